"""Describe the simulated conversations: length, ending, flaws of the simulated user."""

from __future__ import annotations

import statistics
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Protocol

from scenarios.transcript import Conversation, Frozen
from simulator.measure.metrics import Row, Tallies, mean, rows
from simulator.measure.numbers import Rounded
from simulator.measure.tokens import count_tokens


class Flaw(Protocol):
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


Flaws = Mapping[str, Sequence[Flaw]]
"""Flaws by conversation id; a conversation without an entry has none."""


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


def chat_statistics(
    conversations: Sequence[Conversation], chatbots: Sequence[str]
) -> tuple[ChatStatistics, ...]:
    """Summarize the lengths and endings of each chatbot's conversations."""
    return tuple(
        _statistics(name, [item for item in conversations if item.chatbot == name]) for name in chatbots
    )


def audit_report(
    conversations: Sequence[Conversation],
    tallies: Tallies,
    flaws: Flaws,
    chatbots: Sequence[str],
) -> Audit:
    """Count the flaws, and compute the rows again without the conversations that have any.

    Args:
        conversations: all of the run.
        tallies: the counts of each conversation.
        flaws: by conversation id.
        chatbots: names, in the order of the report.
    """
    affected = [item for item in conversations if flaws.get(item.id)]
    sound = {
        key: tuple(item for item in items if not flaws.get(item.conversation))
        for key, items in tallies.items()
    }
    by_chatbot = {
        name: Counter(
            kind
            for item in affected
            if item.chatbot == name
            for kind in sorted({flaw.kind for flaw in flaws[item.id]})
        )
        for name in chatbots
    }
    return Audit(
        conversations=len(conversations),
        affected_conversations=len(affected),
        flaws=dict(Counter(flaw.kind for item in affected for flaw in flaws[item.id])),
        affected={name: dict(kinds) for name, kinds in by_chatbot.items() if kinds},
        rows_without_affected=rows(sound),
    )


def _statistics(chatbot: str, conversations: Sequence[Conversation]) -> ChatStatistics:
    turns = [len(item.turns) for item in conversations]
    tokens = [
        sum(count_tokens(turn.user) + count_tokens(turn.reply) for turn in item.turns)
        for item in conversations
    ]
    return ChatStatistics(
        chatbot=chatbot,
        conversations=len(conversations),
        turns_mean=mean(turns),
        turns_std=_deviation(turns),
        tokens_mean=mean(tokens),
        tokens_std=_deviation(tokens),
        stop_reasons=dict(Counter(item.stop_reason for item in conversations)),
    )


def _deviation(values: Sequence[int]) -> float | None:
    return statistics.stdev(values) if len(values) > 1 else None
