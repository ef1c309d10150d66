"""How long the conversations of each chatbot were, and how they ended."""

from __future__ import annotations

import statistics
from collections import Counter, defaultdict
from collections.abc import Sequence

from hallulab.scenarios.text.wording import format_count
from hallulab.scenarios.transcript import Conversation, Frozen
from hallulab.simulator.metrics.hallucinations import ByDetector
from hallulab.simulator.metrics.metric import Flaws, Metric, RunFacts, Tallied
from hallulab.simulator.metrics.run_report import RunReport
from hallulab.simulator.metrics.tokens import count_tokens
from hallulab.simulator.show.columns import TWO_DECIMALS, Column, build_decimal_format, format_counts
from hallulab.simulator.statistics.intervals import Rounded


class ChatStatistics(Frozen):
    """Lengths of one chatbot's conversations: the table of HalluDetect B.9."""

    chatbot: str
    conversations: int
    turns_mean: Rounded | None
    turns_std: Rounded | None
    """Sample standard deviation (n - 1); None with fewer than two conversations."""
    tokens_mean: Rounded | None
    tokens_std: Rounded | None
    stop_reasons: dict[str, int]


LENGTHS = (
    Column("Chatbot", "chatbot", "name of the chatbot", kind="name"),
    Column("Chats", "conversations", "its conversations"),
    Column("Turns, mean", "turns_mean", "mean number of turns", TWO_DECIMALS),
    Column("std", "turns_std", "standard deviation of it (n − 1)", TWO_DECIMALS),
    Column("Tokens, mean", "tokens_mean", "mean tokens of all messages, by the shared tokenizer",
           build_decimal_format(1)),
    Column("std", "tokens_std", "standard deviation of it (n − 1)", build_decimal_format(1)),
    Column("Ended by", "stop_reasons", "conversations by the reason they ended", format_counts, kind="text"),
)  # fmt: skip


class LengthSection(Frozen):
    """Fields of `report.json`."""

    conversations: tuple[ChatStatistics, ...]


class Lengths(Metric):
    """Collects the lengths and endings of each chatbot's conversations."""

    SECTION = LengthSection
    TABLES = (("Length of conversations", LENGTHS),)
    ORDER = 91
    COUNTS = ("_turns", "_tokens", "_endings")

    def __init__(self, run: RunFacts) -> None:
        super().__init__(run)
        self._turns: dict[str, Counter[int]] = defaultdict(Counter)
        """Chatbot → number of conversations by their turns."""
        self._tokens: dict[str, Counter[int]] = defaultdict(Counter)
        """Likewise by their tokens."""
        self._endings: dict[str, Counter[str]] = defaultdict(Counter)

    def add(self, conversation: Conversation, verdicts: ByDetector, flaws: Flaws) -> None:
        """Measure a conversation."""
        name = conversation.chatbot
        self._turns[name][len(conversation.turns)] += 1
        tokens = (count_tokens(turn.user) + count_tokens(turn.reply) for turn in conversation.turns)
        self._tokens[name][sum(tokens)] += 1
        self._endings[name][conversation.stop_reason] += 1

    def result(self, tallied: Tallied) -> LengthSection:
        """Summarize them."""
        found = tuple(
            ChatStatistics(
                chatbot=name,
                conversations=self._turns[name].total(),
                turns_mean=_compute_mean(self._turns[name]),
                turns_std=_compute_deviation(self._turns[name]),
                tokens_mean=_compute_mean(self._tokens[name]),
                tokens_std=_compute_deviation(self._tokens[name]),
                stop_reasons=dict(self._endings[name]),
            )
            for name in self.run.chatbots
        )
        return LengthSection(conversations=found)

    @classmethod
    def footnotes(cls, report: RunReport) -> Sequence[str]:
        """Say that the limit of turns ended more than half of the conversations, where it did."""
        found = report.of(LengthSection).conversations
        cut = sum(one.stop_reasons.get("max_turns", 0) for one in found)
        total = sum(one.conversations for one in found)
        if 2 * cut <= total:
            return []
        return [
            f"{cut} of {format_count(total, 'conversation')} ended at the limit of turns (`max_turns`), not "
            "by the user: no number here is of later turns."
        ]


def _compute_mean(lengths: Counter[int]) -> float | None:
    total = sum(length * times for length, times in lengths.items())
    return round(total / lengths.total(), 6) if lengths else None


def _compute_deviation(lengths: Counter[int]) -> float | None:
    return statistics.stdev(lengths.elements()) if lengths.total() > 1 else None
