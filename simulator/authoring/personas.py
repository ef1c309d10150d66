"""Write personas with a model, from documents or from real chats.

Each persona has a goal from each of two passages of one topic. A goal is answered by the documents, answered
in part (it asks for something more), or not answered. The model's own claims about goals are not believed:

| what the goal is to be | checks |
|---|---|
| answered | a search for it finds the passage's document, and the model reads the answer off the passage |
| not answered | the model does not read the answer off the two passages that a search finds |
| answered in part | both, for its two halves |

Where no goal of a kind passes, the persona gets one that is answered, and the command says so.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Literal

from hallulab.agents.models.answers import UnparseableAnswer
from hallulab.agents.models.session import Session
from hallulab.agents.retrieval.embeddings import Embedder
from hallulab.agents.retrieval.knowledge import KnowledgeBase
from hallulab.agents.users.personas import MANNERS, asked_for, is_answered, names, write_case, write_goals
from hallulab.agents.users.questions import UNSAID
from hallulab.scenarios.packs.goals import GoalLabel
from hallulab.scenarios.packs.pack import Persona
from hallulab.scenarios.transcript import Passage

Kind = Literal["answered", "in part", "not answered"]
"""Answer of the documents to a goal."""

KINDS: tuple[Kind, ...] = ("answered", "in part", "not answered")

GOALS = 2

TRIES = 4
"""Passages that are tried for a goal, and cases for a persona."""

SAME = 0.9
"""Cosine of the goals of two personas from which they count as the same."""

_FOUND = 3
"""Passages found by a search for an answered goal; its document must be among them."""

_READ = 2
"""Passages in which nothing may be said of a goal that is not answered."""


_LABELS: Mapping[Kind, GoalLabel] = {
    "answered": GoalLabel(expect="answer"),
    "not answered": GoalLabel(expect="decline", because="nowhere"),
}
"""Labels of goals by the documents' answer. One that they answer in part has none: two replies are right."""


@dataclass(frozen=True)
class Goal:
    """A goal that passed its checks."""

    text: str
    kind: Kind
    passage: Passage | None
    """The passage that it was written from; of a chat's goal, the nearest one. None: none tells of it."""
    ours: bool = False
    """True if it, or its second half, is of `UNSAID`."""

    @property
    def label(self) -> GoalLabel | None:
        """The right reply; None: the documents answer in part."""
        return _LABELS.get(self.kind)

    @property
    def note(self) -> str:
        """Hint for a person who edits the goal."""
        about = "" if self.passage is None else f", from {self.passage.id}"
        part = "its second half is " if self.kind == "in part" else ""
        ours = f"; {part}taken from hallulab's own list, not written by the model" if self.ours else ""
        return f"{self.kind}{about}{ours}"


@dataclass(frozen=True)
class Made:
    """A persona that passed its checks."""

    persona: Persona
    goals: tuple[Goal, ...]
    """Its goals, with what the documents say about them."""
    notes: tuple[str, ...] = ()
    """Further hints for a person who edits it, a line each."""


@dataclass
class PersonaBatch:
    """Personas, and failures."""

    made: list[Made] = field(default_factory=list)
    refused: list[str] = field(default_factory=list)
    """Why a goal or a case was written again, a sentence each."""
    replaced: list[str] = field(default_factory=list)
    """Goals that are answered although they were to be otherwise, a sentence each."""
    failed: list[str] = field(default_factory=list)
    """Personas that there are not, a sentence each."""
    doubtful: list[str] = field(default_factory=list)
    """Sentences on what a person must complete or correct."""


class _Unfit(Exception):
    """Text of the model that failed a check."""


class PersonaMaker:
    """Makes personas from the passages of topics.

    Args:
        session: asks the model; makes a fresh one for each persona.
        topics: the passages of each topic, in the order in which personas get them.
        domain: gives the assistant's domain, in the words of a prompt; no goal waits for it.
        seed: draws names, manners, and which persona has a goal that is not answered.
        language: the language of goals and cases (ISO 639-1); None: English.
    """

    def __init__(
        self,
        session: Callable[[], Session],
        knowledge: KnowledgeBase,
        embedder: Embedder,
        topics: Sequence[Sequence[Passage]],
        domain: Callable[[], Awaitable[str]],
        seed: int,
        language: str | None = None,
    ) -> None:
        self._session = session
        self._language = language
        self._knowledge = knowledge
        self._embedder = embedder
        self._topics = topics
        self._domain = domain
        self._seed = seed
        self._stride = GOALS
        self._result = PersonaBatch()

    async def make(
        self, number: int, shares: tuple[float, float, float], on_done: Callable[[], None] = lambda: None
    ) -> PersonaBatch:
        """Make so many personas.

        Args:
            number: personas wanted, at least 1.
            shares: of goals answered, answered in part, not answered.
            on_done: called when a persona is there, or has failed.

        Raises:
            ModelError: the model does not answer.
        """
        kinds = draw_kinds(number, shares, self._seed)
        people = names(number, self._seed)

        async def make_one(place: int) -> Made | None:
            made = await self._make_persona(place, people[place], kinds[place], 0)
            on_done()
            return made

        self._stride = GOALS * -(-number // len(self._topics))
        # The first request puts the examples, with which all begin, into the server's prefix cache.
        with suppress(UnparseableAnswer):
            await write_goals(self._session(), self._choose_passages(0, 0, 0)[0][0].text, 0, self._language)
        made = await asyncio.gather(*(make_one(place) for place in range(number)))
        for place, found in enumerate(made):
            if found is not None and await self._is_repeat(found):
                self._result.refused.append(f"{found.persona.name} wants what another persona wants")
                found = await self._make_persona(place, people[place], kinds[place], TRIES)
                if found is not None and await self._is_repeat(found):
                    self._result.failed.append(f"{people[place]}: wants what another persona wants.")
                    continue
            if found is not None:
                self._result.made.append(found)
        return self._result

    async def _make_persona(self, place: int, name: str, kinds: Sequence[Kind], tried: int) -> Made | None:
        """Make a persona, after so many tries for each of its goals."""
        session = self._session()
        goals: list[Goal] = []

        async def make_wanted(number: int) -> Goal | None:
            passages = self._choose_passages(place, number, tried)
            return await self._make_goal(session, name, passages, kinds[number], tuple(goals))

        # All at once, as a server answers several requests faster; one that repeats another is made again.
        for number, goal in enumerate(await asyncio.gather(*map(make_wanted, range(len(kinds))))):
            if goal is not None and any(goal.text.lower() == other.text.lower() for other in goals):
                goal = await make_wanted(number)
            if goal is None:
                self._result.failed.append(f"{name}: no goal passed its checks.")
                return None
            goals.append(goal)
        texts = [goal.text for goal in goals]
        for attempt in range(TRIES):
            try:
                case = await write_case(session, await self._domain(), name, texts, attempt, self._language)
            except UnparseableAnswer as error:
                self._result.refused.append(str(error))
                continue
            persona = Persona(
                id=f"persona-{place + 1:03d}",
                name=name,
                grievance=case.grievance,
                goals=tuple(texts),
                labels=tuple(goal.label for goal in goals),
                facts=case.facts,
                manner=MANNERS[random.Random(self._seed + place).randrange(len(MANNERS))],  # noqa: S311 - a seeded choice of data
                summary=summarize_goals(texts),
            )
            return Made(persona, tuple(goals))
        self._result.failed.append(f"{name}: the model wrote no case.")
        return None

    def _choose_passages(self, place: int, goal: int, tried: int) -> list[tuple[Passage, int]]:
        """Return the passages to try for a goal, and how often each was taken before.

        No two goals begin with the same passage while the topic has others.
        """
        round_, topic = divmod(place, len(self._topics))
        passages = self._topics[topic]
        turns = (round_ * GOALS + goal + attempt * self._stride for attempt in range(tried, tried + TRIES))
        return [(passages[turn % len(passages)], turn // len(passages)) for turn in turns]

    async def _make_goal(
        self,
        session: Session,
        name: str,
        passages: Sequence[tuple[Passage, int]],
        kind: Kind,
        before: Sequence[Goal],
    ) -> Goal | None:
        """Return a goal of a kind; else the first one that the documents answer; None if there is none.

        It differs from those `before` it.
        """
        answers = None
        taken = {goal.text.lower() for goal in before}
        unsaid = [one for one in UNSAID if not any(asked_for(one).lower() in goal for goal in taken)]
        for attempt, (passage, used) in enumerate(passages):
            try:
                pair = await write_goals(session, passage.text, max(attempt, used), self._language)
                said = await self._require_answered(session, pair.said, passage)
                goal = Goal(said, "answered", passage)
                if answers is None and said.lower() not in taken:
                    answers = goal
                if kind != "answered":
                    own = unsaid[(self._seed + used + len(said)) % len(unsaid)]
                    not_said = await self._choose_unanswered(session, pair.not_said, own)
                    ours = not_said == own
                    text = not_said if kind == "not answered" else f"{said}, and {asked_for(not_said)}"
                    goal = Goal(text, kind, passage, ours)
                if goal.text.lower() in taken:
                    raise _Unfit(f"{goal.text!r}: the persona wants it already")
            except (_Unfit, UnparseableAnswer) as error:
                self._result.refused.append(str(error))
                continue
            return goal
        if answers is not None:
            self._result.replaced.append(f"{name}: {answers.text!r} was to be {kind}")
        return answers

    async def _require_answered(self, session: Session, goal: str, passage: Passage) -> str:
        """Return a goal that a passage answers.

        Raises:
            _Unfit: it does not.
        """
        found = await self._knowledge.search(asked_for(goal), _FOUND)
        if passage.document not in {one.document for one in found}:
            raise _Unfit(f"{goal!r}: a search for it does not find {passage.document}")
        if await is_answered(session, goal, passage.text) < 0.5:
            raise _Unfit(f"{goal!r}: {passage.id} does not tell it")
        return goal

    async def _choose_unanswered(self, session: Session, written: str, own: str) -> str:
        """Return a goal that the documents do not answer: the one that the model wrote, else our own.

        Raises:
            _Unfit: they answer both.
        """
        if await find_answering_passage(session, self._knowledge, written) is None:
            return written
        self._result.refused.append(f"{written!r}: the documents tell it")
        if await find_answering_passage(session, self._knowledge, own) is None:
            return own
        raise _Unfit(f"{own!r}: the documents tell it")

    async def _is_repeat(self, made: Made) -> bool:
        """Return whether a persona that was made before has the same goals."""
        texts = [" ".join(one.persona.goals) for one in (*self._result.made, made)]
        if len(texts) == 1:
            return False
        vectors = await asyncio.to_thread(self._embedder.queries, texts)
        return float((vectors[:-1] @ vectors[-1]).max()) > SAME


async def find_answering_passage(session: Session, knowledge: KnowledgeBase, goal: str) -> Passage | None:
    """Return the best passage of a search for a goal; None: the model reads the goal not off the best two.

    Raises:
        ModelError: the model does not answer.
    """
    found = await knowledge.search(asked_for(goal), _READ)
    text = "\n\n".join(one.text for one in found)
    return found[0] if await is_answered(session, goal, text) >= 0.5 else None


def draw_kinds(number: int, shares: tuple[float, float, float], seed: int) -> list[tuple[Kind, ...]]:
    """Return what the goals of each persona are to be: shares by largest remainder, answered ones first.

    >>> draw_kinds(2, (0.5, 0.25, 0.25), 0)
    [('answered', 'in part'), ('answered', 'not answered')]
    """
    goals = number * GOALS
    counts = [int(share * goals) for share in shares]
    by_remainder = sorted(range(3), key=lambda place: (counts[place] - shares[place] * goals, place))
    for place in by_remainder[: goals - sum(counts)]:
        counts[place] += 1
    kinds = [kind for kind, count in zip(KINDS, counts, strict=True) for _ in range(count)]
    first, later = kinds[:number], kinds[number:]
    random.Random(seed).shuffle(later)  # noqa: S311 - a seeded choice of data
    return [(first[place], *later[place::number]) for place in range(number)]


def summarize_goals(goals: Sequence[str]) -> str:
    """Return the situation of a user who asks for one goal after the other."""
    asked = "; then the user asked, in other words: ".join(asked_for(goal) for goal in goals)
    return (
        f"The user told in a sentence what had happened and asked, in other words: {asked}. "
        "The user ended the chat when there was an answer to each, or none to be had."
    )
