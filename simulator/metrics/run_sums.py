"""Sums of a report over conversations, person after person, so that parts of a run merge.

A person's conversations are counted together, because intervals leave out persons with all that was said to
them. Of each person stay the sums, and mean and squares of what differs between seeds: no text, and no
conversation. Persons of different parts of a run are different ones, so parts merge without any loss.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import combinations
from typing import Literal

from hallulab.scenarios.errors import UsageError
from hallulab.scenarios.transcript import Conversation, Pairing
from hallulab.simulator.metrics.hallucinations import (
    ByDetector,
    Tally,
    count_verdicts,
    index_by_detector,
    merge_branches,
)
from hallulab.simulator.metrics.spending import Spending
from hallulab.simulator.records.journals import Journals
from hallulab.simulator.statistics.intervals import Kind, Ratio, sum_by_cluster
from hallulab.simulator.statistics.sums import ExactSum, Mergeable, Person, PersonTable, Spread

RateName = Literal["hpt_1", "tokacc_1", "answered"]
"""A rate by which chatbots are compared; the share of answered replies is the same under each detector."""

RATES: dict[RateName, Callable[[Tally], Ratio]] = {
    "hpt_1": lambda item: item.hpt,
    "tokacc_1": lambda item: item.tokacc,
    "answered": lambda item: item.answered,
}
"""The value of each sum for a conversation."""

KINDS: dict[RateName, Kind] = {"hpt_1": "rate", "tokacc_1": "share", "answered": "share"}

Both = dict[Pairing, tuple[Ratio, Ratio]]
"""Ratios of two chatbots by persona and seed."""

ByPlace = dict[tuple[Pairing, int], Ratio]
"""Ratios by persona and seed, and by the turn at which a conversation branches off, else -1."""


def pair_places(one: ByPlace, two: ByPlace) -> Both:
    """Return the ratios of two chatbots by persona and seed, at the places that both have.

    Conversations that branch off from the same one are added up, at turns at which both have a ratio.
    """
    shared = sorted(one.keys() & two.keys())
    sums = (sum_by_cluster((place[0], ratios[place]) for place in shared) for ratios in (one, two))
    pairings = dict.fromkeys(pairing for pairing, _ in shared)
    return dict(zip(pairings, zip(*sums, strict=True), strict=True))


def index_by_place(tallies: Sequence[Tally], rate: RateName) -> ByPlace:
    """Return the ratios of one chatbot's conversations.

    Raises:
        UsageError: it has two conversations with the same scenario, persona and seed.
    """
    ratios: ByPlace = {}
    for item in tallies:
        place = (item.pairing, -1 if item.branched_at is None else item.branched_at)
        if place in ratios:
            scenario, persona, seed = item.pairing
            raise UsageError(
                f"two conversations of a chatbot share persona {persona}, seed {seed}, scenario {scenario}: "
                "they cannot be paired with other chatbots'. Report on one configuration at a time."
            )
        ratio = RATES[rate](item)
        if ratio.denominator:
            ratios[place] = ratio
    return ratios


Key = tuple[str, str]

_COUNTS = (
    "turns",
    "scored_turns",
    "failed",
    "abstained",
    "not_localised",
    "hallucinations",
    "unlocated",
    "tokens",
    "answers",
    "declines",
    "chatbot_calls",
    "chatbot_tokens",
    "chatbot_untold",
)
"""Fields of a tally that a row adds up."""


class RowSums(Mergeable):
    """The sums of a row of the report: one chatbot under one detector."""

    COUNTS = (
        *("counts", "conversations", "scored", "hallucinated", "worded"),
        *("hpt", "tokacc", "spending", "_people"),
    )

    def __init__(self) -> None:
        self.counts: Counter[str] = Counter()
        self.conversations = self.scored = self.hallucinated = self.worded = 0
        """All conversations; those with a scored turn, with a hallucination, with tokens."""
        self.hpt, self.tokacc = ExactSum(), ExactSum()
        """Sums of the conversations' own numbers."""
        self.spending = Spending()
        self._people = PersonTable(4)

    def add(self, person: Person, tallies: Iterable[Tally]) -> None:
        """Add all conversations of a person."""
        values: list[float] = []
        sums = [0, 0, 0, 0]
        for item in merge_branches(tallies):
            self.conversations += 1
            for name in _COUNTS:
                self.counts[name] += getattr(item, name)
            self.spending.add(item.spent)
            if not item.scored_turns:
                continue
            self.scored += 1
            self.hallucinated += item.hallucinations > 0
            values.append(item.hallucinations / item.scored_turns)
            self.hpt.add(values[-1])
            sums[0] += item.hallucinations
            sums[1] += item.scored_turns
            if item.tokens:
                self.worded += 1
                self.tokacc.add(item.tokacc.numerator / item.tokens)
                sums[2] += item.tokacc.numerator
                sums[3] += item.tokens
        if values:
            self._people.add(person, sums, values)

    @property
    def personas(self) -> int:
        """Persons with a scored turn."""
        return len(self._people)

    @property
    def hpts(self) -> list[Ratio]:
        """Hallucinations over scored turns of each person."""
        return self._people.ratios(0, 1)

    @property
    def tokaccs(self) -> list[Ratio]:
        """Tokens outside flagged spans over tokens of each person."""
        return self._people.ratios(2, 3)

    def seed_share(self) -> float | None:
        """Return the share of HPT-1's variance that more seeds remove (`intervals`)."""
        return self._people.seed_share()

    def seed_spreads(self) -> dict[Person, Spread]:
        """Return how a conversation's HPT spreads between seeds of each persona."""
        return self._people.seed_spreads()


class HalfSums:
    """One chatbot's conversations in halves by repeat: each persona's seeds in turn."""

    def __init__(self) -> None:
        self._has_single = False
        self._sums: dict[RateName, list[list[int]]] = {rate: [[0, 0], [0, 0]] for rate in RATES}

    def add(self, tallies: Sequence[Tally]) -> None:
        """Add all conversations of a person."""
        users = sorted({item.pairing for item in tallies})
        self._has_single |= len(users) == 1
        half = {user: place % 2 for place, user in enumerate(users)}
        for rate, ratio_of in RATES.items():
            for item in tallies:
                sums, ratio = self._sums[rate][half[item.pairing]], ratio_of(item)
                sums[0] += ratio.numerator
                sums[1] += ratio.denominator

    def merge(self, other: HalfSums) -> None:
        """Add the sums of other persons."""
        self._has_single |= other._has_single
        for rate, halves in other._sums.items():
            for own, more in zip(self._sums[rate], halves, strict=True):
                own[:] = [own[0] + more[0], own[1] + more[1]]

    def difference(self, rate: RateName) -> float | None:
        """Return the difference of the halves; None where one has no number, or a persona has one seed."""
        (over, under), (other_over, other_under) = self._sums[rate]
        if self._has_single or not under or not other_under:
            return None
        return abs(over / under - other_over / other_under)


class PairSums(Mergeable):
    """Two chatbots under one detector by one rate, on the personas and seeds that both have."""

    COUNTS = ("_people",)

    def __init__(self) -> None:
        self._people = PersonTable(4)

    def add(self, person: Person, first: Sequence[Tally], second: Sequence[Tally], rate: RateName) -> None:
        """Add all conversations of a person.

        Raises:
            UsageError: a chatbot has two with the same scenario, persona and seed.
        """
        both = pair_places(index_by_place(first, rate), index_by_place(second, rate)).values()
        if both:
            rows = ((a.numerator, a.denominator, b.numerator, b.denominator) for a, b in both)
            sums = [sum(one) for one in zip(*rows, strict=True)]
            differences = [a.numerator / a.denominator - b.numerator / b.denominator for a, b in both]
            self._people.add(person, sums, differences)

    def ratios(self) -> tuple[list[Ratio], list[Ratio]]:
        """Return the ratios of the one and the other chatbot; those of one place are of one persona."""
        return self._people.ratios(0, 1), self._people.ratios(2, 3)

    def seed_share(self) -> float | None:
        """Return the share of the difference's variance that more seeds remove (`intervals`)."""
        return self._people.seed_share()


class RunSums:
    """All that the report adds up of every chatbot under every detector."""

    def __init__(self, chatbots: Sequence[str], detectors: Sequence[str]) -> None:
        self.rows = {(chatbot, detector): RowSums() for chatbot in chatbots for detector in detectors}
        self.sound = {key: RowSums() for key in self.rows}
        """Those in which the simulated user has no flaw."""
        self._halves = {key: HalfSums() for key in self.rows}
        self._pairs = {
            (a, b, detector, rate): PairSums()
            for detector in detectors
            for a, b in combinations(chatbots, 2)
            for rate in RATES
        }
        self._doubled: UsageError | None = None
        """Why chatbots cannot be compared."""

    def add(self, person: Person, tallies: Mapping[Key, Sequence[Tally]], flawed: frozenset[str]) -> None:
        """Add all conversations with a person.

        Args:
            person: whoever was not added before.
            tallies: the conversations, sorted.
            flawed: identifiers of those in which the simulated user has a flaw.
        """
        for key, items in tallies.items():
            self.rows[key].add(person, items)
            self.sound[key].add(person, (item for item in items if item.conversation not in flawed))
            self._halves[key].add(items)
        for (a, b, detector, rate), sums in self._pairs.items():
            first, second = tallies.get((a, detector), ()), tallies.get((b, detector), ())
            try:
                sums.add(person, first, second, rate)
            except UsageError as error:
                self._doubled = self._doubled or error

    def merge(self, other: RunSums) -> None:
        """Add the sums of other persons."""
        self._doubled = self._doubled or other._doubled
        for key in self.rows:
            self.rows[key].merge(other.rows[key])
            self.sound[key].merge(other.sound[key])
            self._halves[key].merge(other._halves[key])
        for pair, sums in self._pairs.items():
            sums.merge(other._pairs[pair])

    def pair(self, a: str, b: str, detector: str, rate: RateName) -> PairSums:
        """Return the sums of two chatbots, in the order of their names in the run.

        Raises:
            UsageError: a chatbot has two conversations with the same scenario, persona and seed.
        """
        if self._doubled is not None:
            raise self._doubled
        return self._pairs[a, b, detector, rate]

    def halves(self, chatbot: str, detector: str) -> HalfSums:
        """Return the halves of a chatbot's conversations."""
        return self._halves[chatbot, detector]


class Counting:
    """Counts every chatbot under every detector, conversation by conversation.

    Conversations with one person come one after the other: they are kept until the next person comes.
    """

    def __init__(self, chatbots: Sequence[str], detectors: Sequence[str]) -> None:
        self._sums = RunSums(chatbots, detectors)
        self._person: Person | None = None
        self._own: dict[Key, list[Tally]] = defaultdict(list)
        self._flawed: set[str] = set()

    def add(self, conversation: Conversation, verdicts: ByDetector, *, flawed: bool = False) -> None:
        """Count a conversation; nothing if it is another chatbot's."""
        person = (conversation.scenario, conversation.persona)
        if person != self._person:
            self._fold()
            self._person = person
        if flawed:
            self._flawed.add(conversation.id)
        for chatbot, detector in self._sums.rows:
            if chatbot == conversation.chatbot:
                tally = count_verdicts(conversation, verdicts.get(detector, {}))
                self._own[chatbot, detector].append(tally)

    def merge(self, other: Counting) -> None:
        """Add what was counted of other persons."""
        self.sums().merge(other.sums())

    def sums(self) -> RunSums:
        """Return what was counted so far."""
        self._fold()
        return self._sums

    def _fold(self) -> None:
        if self._person is not None and self._own:
            # Sorted, so that the order of the journals does not matter.
            found = {
                key: sorted(items, key=lambda item: (item.pairing, item.conversation))
                for key, items in self._own.items()
            }
            self._sums.add(self._person, found, frozenset(self._flawed))
        self._own.clear()
        self._flawed.clear()


def count_all_verdicts(journals: Journals, chatbots: Sequence[str], detectors: Sequence[str]) -> RunSums:
    """Count every chatbot under every detector. Verdicts on other conversations are left out."""
    counting = Counting(chatbots, detectors)
    for conversation, verdicts in journals.judged():
        counting.add(conversation, index_by_detector(verdicts))
    return counting.sums()
