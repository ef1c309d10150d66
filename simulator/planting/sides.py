"""Split a pack into a side for training and one for testing that share no persona and no document.

The split is made before anything is simulated. A chatbot searches only the documents of its own side, so no
passage of a test document is in a training dialogue, and no dialogue has to be left out afterwards.

Documents are drawn for the test side, and then moved between the sides, one or all of a persona at a time, as
long as that is better: more goals keep their documents, and each topic has nearer to the wanted share of its
personas on the test side. A persona is on the side that has the documents of more of its goals. It keeps
these goals, and the others are cut: no chatbot of its side could answer them.
"""

from __future__ import annotations

import random
from collections import Counter, defaultdict
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from hallulab.agents.retrieval.word_search import WordSearch
from hallulab.scenarios.errors import UsageError
from hallulab.scenarios.packs.goals import GoalLabel
from hallulab.scenarios.packs.pack import Document, Persona, Scenario

TRAIN, TEST = "train", "test"
UNLABELLED = "unlabelled"
"""Kind of the goals of a pack that does not say which reply is right."""
_STARTS = 5
"""Draws of documents from which the best split is looked for."""


@dataclass(frozen=True)
class PackSide:
    """The part of a pack that one side has."""

    scenario: Scenario
    """Its documents, and its personas with the goals that they keep, of one kind each."""
    origins: Mapping[str, tuple[str, str, str]]
    """Persona of the side → the pack's persona, its topic, and the kind of its goals."""
    cut: int
    """Goals of its personas that were cut because their documents are on the other side."""


async def split_pack(scenario: Scenario, share: float, seed: int) -> dict[str, PackSide]:
    """Split a pack; only the training side is returned if the share is 0.

    Scripted personas are left out: they say the same each time.

    Args:
        share: the wanted share of personas on the test side.

    Raises:
        UsageError: no persona is played by a model, or one side would have no persona or no document.
    """
    personas = [persona for persona in scenario.personas if not persona.messages]
    if not personas:
        raise UsageError(
            f"scenario {scenario.name} has no persona that a model plays. Give another --scenario."
        )
    search = WordSearch(scenario)
    needed = {persona.id: await find_goal_documents(persona, search) for persona in personas}
    topics = {one.id: find_topic(one, needed[one.id], scenario.documents) for one in personas}
    if share == 0:
        return {TRAIN: _build_side(scenario, TRAIN, personas, scenario.documents, needed, topics)}
    tested = _draw_test_documents([one.name for one in scenario.documents], needed, topics, share, seed)
    sides = {}
    for name in (TRAIN, TEST):
        own = [one for one in scenario.documents if (one.name in tested) == (name == TEST)]
        people = []
        for one in personas:
            trained, inside = _count_kept(needed[one.id], tested)
            if (inside > trained) == (name == TEST):
                people.append(one)
        sides[name] = _build_side(scenario, name, people, own, needed, topics)
        if not own or not sides[name].scenario.personas:
            raise UsageError(
                f"scenario {scenario.name} cannot be split: the {name} side would have no "
                f"{'persona' if own else 'document'}. Give a pack with more of them, or --test 0."
            )
    return sides


async def find_goal_documents(persona: Persona, search: WordSearch) -> list[frozenset[str]]:
    """Return the documents of each goal: those that its label names, else the nearest by its words.

    A goal that no document answers has none.
    """
    found = []
    for goal, label in zip(persona.goals, get_goal_labels(persona), strict=True):
        if label is not None and (label.documents or label.expect == "decline"):
            found.append(frozenset(label.documents))
        else:
            found.append(frozenset(one.document for one in await search.search(goal, 1)))
    return found


def get_goal_labels(persona: Persona) -> Sequence[GoalLabel | None]:
    """Return the label of each goal, None without one."""
    return persona.labels or (None,) * len(persona.goals)


def find_topic(persona: Persona, needed: Sequence[Collection[str]], documents: Sequence[Document]) -> str:
    """Return the topic of most documents of the persona's sector, else of those of its goals."""
    topics = {one.name: one.topic or one.sector or one.name for one in documents}
    own = [topics[one.name] for one in documents if persona.sector and one.sector == persona.sector]
    own = own or [topics[name] for names in needed for name in sorted(names)]
    return Counter(own).most_common(1)[0][0] if own else persona.sector or "none"


def _count_kept(needed: Sequence[frozenset[str]], tested: set[str]) -> tuple[int, int]:
    """Return how many goals have all their documents on the training side, and how many on the test side."""
    inside = sum(not names.isdisjoint(tested) and names <= tested for names in needed)
    return sum(bool(names) and names.isdisjoint(tested) for names in needed), inside


def _draw_test_documents(
    documents: Sequence[str],
    needed: Mapping[str, Sequence[frozenset[str]]],
    topics: Mapping[str, str],
    share: float,
    seed: int,
) -> set[str]:
    """Return the documents of the test side: the best split that moves reach from a few draws."""
    personas = Counter(topics.values())
    together = [frozenset[str]().union(*goals) for goals in needed.values()]
    movable = sorted({frozenset({name}) for names in together for name in names} | {*together}, key=sorted)
    holders: dict[str, list[str]] = defaultdict(list)
    for persona, names in zip(needed, together, strict=True):
        for name in names:
            holders[name].append(persona)
    # A side without a persona costs more than anything else can.
    dearest = sum(map(len, needed.values())) + 2 * len(needed) + 1
    fewest_cut: tuple[float, set[str]] | None = None

    def move(
        names: Collection[str], tested: set[str], other: set[str], cut: int, found: Counter[str]
    ) -> tuple[float, int, Counter[str]]:
        """Return the cost after a move of documents, the goals that are cut, and test personas by topic."""
        found = found.copy()
        for persona in {persona for name in names for persona in holders[name]}:
            before, after = (_count_kept(needed[persona], side) for side in (tested, other))
            cut += max(before) - max(after)
            found[topics[persona]] += (after[1] > after[0]) - (before[1] > before[0])
        uneven = sum(abs(found[topic] - share * count) for topic, count in personas.items())
        empty = dearest if found.total() in (0, len(needed)) else 0
        return empty + cut + uneven + abs(found.total() - share * len(needed)), cut, found

    for start in range(_STARTS):
        generator = random.Random(f"{seed} {start}")  # noqa: S311 - a seeded choice of data
        tested = {name for name in documents if generator.random() < share}
        cost, cut, found = move(tested, set(), tested, 0, Counter())
        moved = True
        while moved:
            moved = False
            for names in generator.sample(movable, len(movable)):
                other = tested - names if names <= tested else tested | names
                reached, cut_then, found_then = move(names, tested, other, cut, found)
                if reached < cost:
                    tested, cost, cut, found, moved = other, reached, cut_then, found_then, True
        if fewest_cut is None or cost < fewest_cut[0]:
            fewest_cut = cost, tested
    assert fewest_cut is not None
    return fewest_cut[1]


def _build_side(
    scenario: Scenario,
    side: str,
    personas: Sequence[Persona],
    documents: Sequence[Document],
    needed: Mapping[str, Sequence[frozenset[str]]],
    topics: Mapping[str, str],
) -> PackSide:
    """Return a side's pack, with a persona for each kind of goals that a persona has."""
    names = {one.name for one in documents}
    own: list[Persona] = []
    origins: dict[str, tuple[str, str, str]] = {}
    cut = 0
    for persona in personas:
        by_kind: dict[str, list[int]] = defaultdict(list)
        for place, (goal_documents, label) in enumerate(
            zip(needed[persona.id], get_goal_labels(persona), strict=True)
        ):
            if names.issuperset(goal_documents):
                by_kind[UNLABELLED if label is None else label.expect].append(place)
            else:
                cut += 1
        for kind, places in by_kind.items():
            kept = _keep_goals(persona, places, kind)
            own.append(kept)
            origins[kept.id] = persona.id, topics[persona.id], kind
    thresholds = {topic: scenario.identity_thresholds[topic] for topic in scenario.identity_thresholds
                  if topic in {one.topic for one in documents}}  # fmt: skip
    part = {
        "name": f"{scenario.name}-{side}",
        "documents": tuple(documents),
        "personas": tuple(own),
        "identity_thresholds": thresholds,
    }
    return PackSide(scenario.model_copy(update=part), origins, cut)


def _keep_goals(persona: Persona, places: Sequence[int], kind: str) -> Persona:
    """Return a persona with some of its goals, all of one kind, which its identifier then names."""
    kept: dict[str, Any] = {"goals": tuple(persona.goals[place] for place in places)}
    if kind != UNLABELLED:
        kept |= {
            "id": f"{persona.id}-{kind}",
            "labels": tuple(get_goal_labels(persona)[place] for place in places),
        }
    return persona.model_copy(update=kept)
