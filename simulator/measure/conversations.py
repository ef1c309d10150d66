"""Describe the simulated conversations: length, ending, flaws of the simulated user."""

from __future__ import annotations

import statistics
from array import array
from collections import Counter, defaultdict
from collections.abc import Sequence
from functools import partial
from typing import Protocol

from hallulab.scenarios.transcript import Conversation, Frozen
from hallulab.simulator.measure.metrics import Row, Tallies, build_rows, compute_mean
from hallulab.simulator.measure.numbers import Rounded
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
