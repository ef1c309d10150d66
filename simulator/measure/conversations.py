"""Lengths, endings and user flaws of conversations, and where hallucinated replies concentrate.

Where hallucinated replies concentrate: by turn, length of the reply, nearest document and topic.
A reply is hallucinated by a detector that flagged it, or something in it. All chatbots count together. The
replies of one persona depend on each other, so intervals resample those together.
"""

from __future__ import annotations

import statistics
from array import array
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from functools import partial
from typing import Literal, Protocol

from hallulab.scenarios.chats.turns import TOPIC
from hallulab.scenarios.transcript import Conversation, Frozen, Turn
from hallulab.simulator.measure.hallucinations import (
    ByDetector,
    Person,
    Row,
    Tallies,
    build_rows,
    compute_mean,
)
from hallulab.simulator.measure.intervals import (
    Interval,
    Ratio,
    Rounded,
    compute_interval,
    compute_ratio_of_sums,
    explain_no_interval,
    sum_by_cluster,
)
from hallulab.simulator.measure.tokens import count_tokens


class TurnFlaw(Protocol):
    """A flaw of the simulated user in one turn."""

    @property
    def turn(self) -> int:
        """Index of the turn."""
        ...

    @property
    def kind(self) -> str:
        """`empty`, `role_swap`, `leaked_instructions`, `repeated`, `premature_stop`."""
        ...

    @property
    def detail(self) -> str:
        """What was seen, for people."""
        ...


class ChatStatistics(Frozen):
    """Lengths of one chatbot's conversations: the table of HalluDetect B.9."""

    chatbot: str
    """Name of the chatbot."""
    conversations: int
    """Number of conversations."""
    turns_mean: Rounded | None
    """Mean number of turns."""
    turns_std: Rounded | None
    """Sample standard deviation (n - 1); None with fewer than two conversations."""
    tokens_mean: Rounded | None
    """Mean number of tokens of all messages, the user's and the chatbot's, by the shared tokenizer."""
    tokens_std: Rounded | None
    """Sample standard deviation, as above."""
    stop_reasons: dict[str, int]
    """Conversations by the reason they ended."""


class Audit(Frozen):
    """Flaws of the simulated user, and the numbers without the conversations that have any."""

    conversations: int
    """Conversations audited."""
    affected_conversations: int
    """Conversations with at least one flaw."""
    flaws: dict[str, int]
    """Number of flaws by kind."""
    affected: dict[str, dict[str, int]]
    """Affected conversations by kind, for each chatbot that has any."""
    rows_without_affected: tuple[Row, ...]
    """The rows of the report, recomputed without the affected conversations."""


class Lengths:
    """Collects the lengths and endings of each chatbot's conversations."""

    def __init__(self) -> None:
        self._turns: dict[str, array[int]] = defaultdict(partial(array, "q"))
        self._tokens: dict[str, array[int]] = defaultdict(partial(array, "q"))
        self._endings: dict[str, Counter[str]] = defaultdict(Counter)

    def add(self, conversation: Conversation) -> None:
        """Measure a conversation."""
        name = conversation.chatbot
        self._turns[name].append(len(conversation.turns))
        tokens = (count_tokens(turn.user) + count_tokens(turn.reply) for turn in conversation.turns)
        self._tokens[name].append(sum(tokens))
        self._endings[name][conversation.stop_reason] += 1

    def statistics(self, chatbots: Sequence[str]) -> tuple[ChatStatistics, ...]:
        """Summarize them."""
        return tuple(
            ChatStatistics(
                chatbot=name,
                conversations=len(self._turns[name]),
                turns_mean=compute_mean(self._turns[name]),
                turns_std=_compute_deviation(self._turns[name]),
                tokens_mean=compute_mean(self._tokens[name]),
                tokens_std=_compute_deviation(self._tokens[name]),
                stop_reasons=dict(self._endings[name]),
            )
            for name in chatbots
        )


class Auditing:
    """Counts the flaws of the simulated user, conversation by conversation."""

    def __init__(self) -> None:
        self._conversations = 0
        self._affected: set[str] = set()
        self._flaws: Counter[str] = Counter()
        self._by_chatbot: dict[str, Counter[str]] = defaultdict(Counter)

    def add(self, conversation: Conversation, flaws: Sequence[TurnFlaw]) -> None:
        """Count the flaws of a conversation."""
        self._conversations += 1
        if flaws:
            self._affected.add(conversation.id)
            self._flaws.update(flaw.kind for flaw in flaws)
            self._by_chatbot[conversation.chatbot].update({flaw.kind for flaw in flaws})

    def audit(self, tallies: Tallies, chatbots: Sequence[str]) -> Audit:
        """Compute the rows again without the conversations that have a flaw.

        Args:
            tallies: the counts of each conversation.
            chatbots: names, in the order of the report.
        """
        sound = {
            key: tuple(item for item in items if item.conversation not in self._affected)
            for key, items in tallies.items()
        }
        return Audit(
            conversations=self._conversations,
            affected_conversations=len(self._affected),
            flaws=dict(self._flaws),
            affected={name: dict(self._by_chatbot[name]) for name in chatbots if name in self._by_chatbot},
            rows_without_affected=build_rows(sound),
        )


def _compute_deviation(values: Sequence[int]) -> float | None:
    return statistics.stdev(values) if len(values) > 1 else None


By = Literal["all", "turn", "length", "document", "topic"]
KINDS: tuple[By, ...] = ("all", "turn", "length", "document", "topic")

MOST = 10
"""Documents, and topics, with a row of their own: those with most replies."""

NONE = "(none)"
"""Value of replies without evidence, or without a topic."""
OTHERS = "(others)"
"""Value of documents, or topics, without a row of their own."""

_TURNS = ((1, "1"), (2, "2"), (3, "3"), (4, "4"), (9, "5 to 9"))
_LAST_TURNS = "10 and later"
_WORDS = ((25, "up to 25 words"), (50, "26 to 50"), (100, "51 to 100"), (200, "101 to 200"))
_LONGEST = "over 200 words"
_BANDS: dict[By, tuple[str, ...]] = {
    "all": ("replies",),
    "turn": (*(name for _, name in _TURNS), _LAST_TURNS),
    "length": (*(name for _, name in _WORDS), _LONGEST),
}

Cell = tuple[By, str | None]
"""What replies have in common: None is no document, or no topic."""


class Concentration(Frozen):
    """Some of the replies under a detector."""

    detector: str
    """Name of the detector."""
    by: By
    """What the replies have in common: their turn, length, nearest document or topic; `all`: nothing."""
    value: str
    """Which turn, length, document or topic."""
    replies: int
    """These replies."""
    scored: int
    """Those that the detector scored."""
    coverage: Rounded | None
    """scored / replies."""
    hallucinated: int
    """Scored ones that are flagged, or have a hallucination."""
    share: Rounded | None
    """hallucinated / scored; None if nothing is scored."""
    share_ci95: Interval
    """Cluster bootstrap over personas; None with fewer than `LEAST_FOR_INTERVAL`."""
    no_interval: str | None
    """Why there is no interval."""


class Concentrations:
    """Counts replies, conversation by conversation.

    Args:
        detectors: names of all detectors, in the order of the rows.
    """

    def __init__(self, detectors: Sequence[str]) -> None:
        self._detectors = detectors
        self._replies: Counter[Cell] = Counter()
        self._clusters: dict[Person, int] = {}
        """Persona → number."""
        self._judged: dict[tuple[str, Cell], array[int]] = defaultdict(lambda: array("q"))
        """Of each conversation three numbers: its cluster, its hallucinated replies, its scored ones."""

    def add(self, conversation: Conversation, verdicts: ByDetector) -> None:
        """Count a conversation.

        Args:
            conversation: it.
            verdicts: those on it, by detector and turn.
        """
        person = (conversation.scenario, conversation.persona)
        cluster = self._clusters.setdefault(person, len(self._clusters))
        cells = {turn.index: tuple(_enumerate_cells(conversation, turn)) for turn in conversation.turns}
        self._replies.update(cell for own in cells.values() for cell in own)
        for detector in self._detectors:
            found: dict[Cell, list[bool]] = defaultdict(list)
            for turn, verdict in verdicts.get(detector, {}).items():
                if verdict.outcome == "scored":
                    for cell in cells.get(turn, ()):
                        found[cell].append(bool(verdict.flagged or verdict.spans))
            for cell, flags in found.items():
                self._judged[detector, cell].extend((cluster, sum(flags), len(flags)))

    def rows(self) -> tuple[Concentration, ...]:
        """Return the rows: of each detector, those with replies; by topic only where one is given."""
        kinds = [kind for kind in KINDS if kind != "topic" or self._has_topics()]
        return tuple(row for name in self._detectors for kind in kinds for row in self._rows(name, kind))

    def _has_topics(self) -> bool:
        return any(kind == "topic" and name is not None for kind, name in self._replies)

    def _rows(self, detector: str, kind: By) -> Iterator[Concentration]:
        for value, cells in self._values(kind):
            replies = sum(self._replies[kind, name] for name in cells)
            judged = sum_by_cluster(one for name in cells for one in self._ratios(detector, (kind, name)))
            scored = sum(ratio.denominator for ratio in judged)
            if replies:
                yield Concentration(
                    detector=detector,
                    by=kind,
                    value=value,
                    replies=replies,
                    scored=scored,
                    coverage=scored / replies,
                    hallucinated=sum(ratio.numerator for ratio in judged),
                    share=compute_ratio_of_sums(judged),
                    share_ci95=compute_interval(judged),
                    no_interval=explain_no_interval(len(judged)),
                )

    def _ratios(self, detector: str, cell: Cell) -> Iterator[tuple[int, Ratio]]:
        """Yield (cluster, ratio) of each conversation in a cell."""
        held = self._judged.get((detector, cell), array("q"))
        for cluster, hallucinated, scored in zip(held[::3], held[1::3], held[2::3], strict=True):
            yield cluster, Ratio(hallucinated, scored)

    def _values(self, kind: By) -> list[tuple[str, list[str | None]]]:
        """Return (value of a row, names that it counts) in the order of the rows."""
        if kind in _BANDS:
            return [(name, [name]) for name in _BANDS[kind]]
        counts = {
            name: self._replies[by, name] for by, name in self._replies if by == kind and name is not None
        }
        names = sorted(counts, key=lambda name: (-counts[name], name))
        shown: list[tuple[str, list[str | None]]] = [(name, [name]) for name in names[:MOST]]
        return [*shown, (OTHERS, [*names[MOST:]]), (NONE, [None])]


def _enumerate_cells(conversation: Conversation, turn: Turn) -> Iterator[Cell]:
    number, words = conversation.depth(turn.index) + 1, len(turn.reply.split())
    yield "all", _BANDS["all"][0]
    yield "turn", next((name for most, name in _TURNS if number <= most), _LAST_TURNS)
    yield "length", next((name for most, name in _WORDS if words <= most), _LONGEST)
    yield "document", turn.passages[0].document if turn.passages else None
    given = next((step.text for step in turn.steps if step.name == TOPIC), None)
    yield "topic", given or next((one.topic for one in turn.passages[:1] if one.topic), None)
