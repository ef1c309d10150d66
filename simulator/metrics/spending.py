"""The cost of model calls, and the choices that are worth it."""

from __future__ import annotations

import math
import operator
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from hallulab.scenarios.transcript import Call
from hallulab.simulator.statistics.sums import ExactSum


@dataclass(frozen=True, slots=True)
class Spent:
    """The cost of calls."""

    calls: int = 0
    """Model calls, failed and replayed ones included."""
    failed: int = 0
    """Calls without an answer."""
    replayed: int = 0
    """Calls answered from a recording or an equal request."""
    uncounted: int = 0
    """Calls whose tokens the server did not report; the sums lack them."""
    prompt_tokens: int | None = 0
    """Tokens read; None when no server reported them."""
    completion_tokens: int | None = 0
    """Tokens written; None when no server reported them."""
    cached_tokens: int | None = 0
    """Prompt tokens from the server's prefix cache; None when no server reported them."""
    seconds: float = 0.0
    untold: int = 0
    """Answered calls whose tokens the server did not report: those of `uncounted` that did not fail."""

    @property
    def tokens(self) -> int | None:
        """Tokens read and written, as far as they are known; None when none is known."""
        if self.prompt_tokens is None and self.completion_tokens is None:
            return None
        return (self.prompt_tokens or 0) + (self.completion_tokens or 0)

    @property
    def all_tokens(self) -> int | None:
        """Tokens read and written; None when those of an answered call are not known."""
        return None if self.untold else self.tokens


def sum_calls(calls: Sequence[Call]) -> Spent:
    """Add up calls."""
    failed = replayed = uncounted = untold = 0
    none: int | None = None if calls else 0
    prompt = completion = cached = none
    for call in calls:
        failed += call.error is not None
        replayed += call.replayed
        lacks_counts = _lacks_counts(call)
        uncounted += lacks_counts
        untold += lacks_counts and call.error is None
        prompt = _add_known(prompt, call.prompt_tokens)
        completion = _add_known(completion, call.completion_tokens)
        cached = _add_known(cached, call.cached_tokens)
    return Spent(
        calls=len(calls),
        failed=failed,
        replayed=replayed,
        uncounted=uncounted,
        prompt_tokens=prompt,
        completion_tokens=completion,
        cached_tokens=cached,
        seconds=math.fsum(call.latency_s for call in calls),
        untold=untold,
    )


def count_read_and_written(calls: Iterable[Call]) -> tuple[int, int]:
    """Return the tokens that servers read and wrote, and the number of answered calls without such counts.

    Those out of the server's cache count too: chatbots share it, so a text would count for the one that
    happened to ask first. Failed calls are left out.
    """
    answered = [call for call in calls if call.error is None]
    told = [call for call in answered if not _lacks_counts(call)]
    return sum(call.tokens for call in told), len(answered) - len(told)


def _lacks_counts(call: Call) -> bool:
    return call.prompt_tokens is None or call.completion_tokens is None


def _add_known(total: int | None, count: int | None) -> int | None:
    return total if count is None else count if total is None else total + count


def sum_spent(parts: Iterable[Spent]) -> Spent:
    """Add up costs, independent of their order."""
    some = [part for part in parts if part.calls]
    return Spent(
        calls=sum(part.calls for part in some),
        failed=sum(part.failed for part in some),
        replayed=sum(part.replayed for part in some),
        uncounted=sum(part.uncounted for part in some),
        prompt_tokens=sum_known([part.prompt_tokens for part in some]),
        completion_tokens=sum_known([part.completion_tokens for part in some]),
        cached_tokens=sum_known([part.cached_tokens for part in some]),
        seconds=math.fsum(part.seconds for part in some),
        untold=sum(part.untold for part in some),
    )


class Spending:
    """Adds up the costs of conversations, one after the other."""

    def __init__(self) -> None:
        self.chats = 0
        self._counts = [0, 0, 0, 0, 0]
        """Calls, failed, replayed, uncounted and untold ones."""
        self._tokens: list[int | None] | None = None
        """Tokens read, written and cached; None: there were no calls yet."""
        self._seconds = ExactSum()

    def add(self, part: Spent) -> None:
        """Add the cost of a conversation."""
        self.chats += 1
        if part.calls:
            counts = (part.calls, part.failed, part.replayed, part.uncounted, part.untold)
            self._add(counts, (part.prompt_tokens, part.completion_tokens, part.cached_tokens))
            self._seconds.add(part.seconds)

    def merge(self, other: Spending) -> None:
        """Add the costs that another one added up."""
        self.chats += other.chats
        if other._tokens is not None:
            self._add(other._counts, other._tokens)
            self._seconds.merge(other._seconds)

    def total(self) -> Spent:
        """Return the cost of all."""
        prompt, completion, cached = self._tokens or (0, 0, 0)
        calls, failed, replayed, uncounted, untold = self._counts
        seconds = self._seconds.value()
        return Spent(calls, failed, replayed, uncounted, prompt, completion, cached, seconds, untold)

    def _add(self, counts: Sequence[int], tokens: Sequence[int | None]) -> None:
        self._counts = list(map(operator.add, self._counts, counts))
        held = self._tokens
        self._tokens = list(tokens) if held is None else list(map(_add_known, held, tokens))


def sum_known(counts: Sequence[int | None]) -> int | None:
    """Add up the known counts; 0 without counts, None when there are counts and none is known.

    >>> sum_known([3, None, 4])
    7
    """
    known = [count for count in counts if count is not None]
    return sum(known) if known or not counts else None


def find_pareto_front(choices: Sequence[Sequence[float | None]]) -> list[bool]:
    """Return which choices are Pareto-optimal: no other is at least as good in everything and better in one.

    >>> find_pareto_front([(0.9, -5), (0.8, -1), (0.8, -9)])
    [True, True, False]

    MetaRAG section 5.4 asks only that no other is strictly better at no higher cost. Then the dearer one of
    two equally good choices would be optimal, too.

    Args:
        choices: the same criteria for each, higher is better (a cost is given with a minus). A choice that
            lacks a number is never optimal.
    """
    known = [tuple(choice) for choice in choices if None not in choice]
    return [
        None not in choice
        and not any(
            other != tuple(choice) and all(a >= b for a, b in zip(other, choice, strict=True))  # type: ignore[operator]
            for other in known
        )
        for choice in choices
    ]
