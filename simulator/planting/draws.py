"""Draw users by quotas before anything is simulated: a persona, a seed and a chatbot each.

How a user speaks is drawn by persona and seed as in every run. So a manner is not given to a user: a seed is
looked for that draws it.
"""

from __future__ import annotations

import random
from collections import Counter, defaultdict
from collections.abc import Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import count, cycle
from typing import NamedTuple, TypeVar

from hallulab.agents.users.personas import OWN, draw_manner
from hallulab.scenarios.errors import UsageError
from hallulab.simulator.planting.quotas import allot, cross
from hallulab.simulator.planting.sides import TEST, TRAIN, PackSide

Name = TypeVar("Name", bound=Hashable)


class QuotaCell(NamedTuple):
    """A combination of quotas that one dialogue has."""

    side: str
    topic: str
    goals: str
    """Kind of the persona's goals."""
    manner: str
    chatbot: str


class DrawnUser(NamedTuple):
    """A user of a dialogue."""

    persona: str
    """Persona of the side's pack."""
    seed: int
    chatbot: str


@dataclass(frozen=True)
class Shares:
    """The shares that are wanted; each adds up to 1."""

    topics: Mapping[str, float] | None
    """None: evenly, as far as the kinds of goals allow."""
    goals: Mapping[str, float]
    manners: Mapping[str, float]
    chatbots: Mapping[str, float]
    test: float


def plan_cells(sides: Mapping[str, PackSide], shares: Shares, number: int, seed: int) -> list[QuotaCell]:
    """Return what is wanted of each dialogue, in an order drawn from the seed.

    Raises:
        UsageError: no dialogues of these personas have these quotas.
    """
    by_topic: dict[str, set[str]] = defaultdict(set)
    by_kind: dict[str, set[str]] = defaultdict(set)
    for side, part in sides.items():
        for _, topic, kind in part.origins.values():
            by_topic[topic].add(side)
            by_kind[kind].add(side)
    topic_counts = allot(shares.topics or dict.fromkeys(sorted(by_topic), 1.0), number)
    goal_counts = allot(shares.goals, number)
    tested = round(number * shares.test)
    if shares.topics:
        tested = _limit_tested(tested, by_topic, topic_counts)
    tested = _limit_tested(tested, by_kind, goal_counts)
    topics = split_counts(by_topic, topic_counts, tested)
    goals = split_counts(by_kind, goal_counts, tested)
    everywhere: dict[str, set[str]] = defaultdict(lambda: {TRAIN, TEST})
    manners, bots = (
        split_counts(everywhere, allot(one, number), tested) for one in (shares.manners, shares.chatbots)
    )
    generator = random.Random(seed)  # noqa: S311 - a seeded choice of data
    cells: list[QuotaCell] = []
    for side, part in sides.items():
        allowed = {(topic, kind) for _, topic, kind in part.origins.values()}
        table = cross(topics[side], goals[side], allowed, exact_rows=shares.topics is not None)
        if table is None:
            kinds = Counter(kind for *_, kind in part.origins.values())
            listed = ", ".join(f"{kind} of {number}" for kind, number in sorted(kinds.items()))
            raise UsageError(
                f"the personas of the {side} side cannot have these quotas: their goals are {listed}. "
                "Change --goals or --topics, or give another --seed."
            )
        pairs = _shuffle(table, generator)
        spoken, asked = _shuffle(manners[side], generator), _shuffle(bots[side], generator)
        cells += [QuotaCell(side, *pair, *rest) for pair, *rest in zip(pairs, spoken, asked, strict=True)]
    return cells


def _limit_tested(tested: int, sides_of: Mapping[str, set[str]], counts: Mapping[str, int]) -> int:
    """Return the nearest number on the test side to the wanted one that leaves each name on its side."""
    fixed = Counter[str]()
    for name, number in counts.items():
        if len(sides_of[name]) == 1:
            fixed.update(dict.fromkeys(sides_of[name], number))
    return min(max(tested, fixed[TEST]), sum(counts.values()) - fixed[TRAIN])


def split_counts(
    sides_of: Mapping[str, set[str]], counts: Mapping[str, int], tested: int
) -> dict[str, dict[str, int]]:
    """Return the number of dialogues of each name on each side.

    A name that one side alone has is there as a whole, and the test side has as near to the wanted number as
    that leaves open.

    >>> split_counts({"rail": {"train", "test"}, "air": {"train"}}, {"rail": 6, "air": 4}, 3)
    {'train': {'rail': 3, 'air': 4}, 'test': {'rail': 3, 'air': 0}}
    """
    fixed = sum(count for name, count in counts.items() if sides_of[name] == {TEST})
    shared = {name: count for name, count in counts.items() if len(sides_of[name]) > 1}
    left = min(max(tested - fixed, 0), sum(shared.values()))
    drawn = allot(shared, left) if left else {}
    found: dict[str, dict[str, int]] = {TRAIN: {}, TEST: {}}
    for name, number in counts.items():
        own = number if sides_of[name] == {TEST} else drawn.get(name, 0)
        found[TEST][name], found[TRAIN][name] = own, number - own
    return found


def _shuffle(counts: Mapping[Name, int], generator: random.Random) -> list[Name]:
    names = [name for name, number in counts.items() for _ in range(number)]
    return generator.sample(names, len(names))


class UserDraw:
    """Draws users for cells, none twice. Equal arguments and calls give equal users.

    Args:
        manners: those that users draw from, as of an experiment.
        seed: of the order of personas, and the first seed of users.
    """

    def __init__(self, sides: Mapping[str, PackSide], manners: Sequence[str], seed: int) -> None:
        self._manners = manners
        self._seed = seed
        people: dict[tuple[str, str, str], list[str]] = defaultdict(list)
        for side, part in sides.items():
            for persona, (_, topic, kind) in part.origins.items():
                people[side, topic, kind].append(persona)
        generator = random.Random(seed)  # noqa: S311 - a seeded choice of data
        self._next = {cell: cycle(generator.sample(own, len(own))) for cell, own in people.items()}
        self._seeds: dict[tuple[str, str], Iterator[int]] = {}

    def draw(self, cell: QuotaCell) -> DrawnUser:
        """Return another user for a cell: its personas take turns, each with its next seed."""
        persona = next(self._next[cell.side, cell.topic, cell.goals])
        seeds = self._seeds.setdefault((persona, cell.manner), self._find_seeds(persona, cell.manner))
        return DrawnUser(persona, next(seeds), cell.chatbot)

    def _find_seeds(self, persona: str, manner: str) -> Iterator[int]:
        return (
            seed for seed in count(self._seed) if (draw_manner(self._manners, persona, seed) or OWN) == manner
        )
