"""The tries of one request: which failures are tried again, after which pause, and when it is enough.

`timeout` is the total of all tries and the pauses between them. The openai client tries again, too, but not
until a time; docs/design/architecture.md says what else it does not know of.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable

import httpx2
from openai import APIConnectionError, APIStatusError, APITimeoutError
from tenacity import AsyncRetrying, RetryCallState, retry_if_exception, wait_random_exponential
from tenacity.wait import wait_base

from hallulab.agents.models.answers import BrokenAnswer
from hallulab.agents.models.complaints import BUSY_STATUS, is_out_of_quota, is_retryable
from hallulab.agents.models.pauses import read_pause
from hallulab.agents.models.receiving import read_object
from hallulab.agents.models.transport import CallRecord, is_before_the_run
from hallulab.agents.models.unreachable import name_trouble

LEAST_LEFT = 0.01
"""Part of the total that must be left for another try."""

FEW = 4
"""Tries of what is tried a few times only: an answer that comes broken, an address where nobody has answered
yet, a question before the run."""


class Outage:
    """How long nobody has answered at one endpoint, for all its requests together.

    The first request of an outage waits for its end until its total is over, later ones until the same time:
    a server that is gone does not hold up each request anew.
    """

    def __init__(self) -> None:
        self.has_answered = False
        """True if anybody has ever answered there."""
        self._since: float | None = None

    def note_answer(self) -> None:
        """Note that somebody answered."""
        self.has_answered, self._since = True, None

    def note_silence(self) -> float:
        """Note that nobody did; return for how many seconds nobody has."""
        now = asyncio.get_running_loop().time()
        self._since = now if self._since is None else self._since
        return now - self._since


class Tries:
    """Makes one request until it is answered, refused for good, or its total is over.

    Args:
        total_s: seconds of all tries and pauses.
        record: counts the seconds.
        backoff: pauses between tries; None: exponential with jitter.
        attempts: tries at most; None: as many as the total allows. Not counted are those that the endpoint
            puts off to a time, and those that an adaptive limit let begin too early.
    """

    def __init__(
        self,
        total_s: float,
        record: CallRecord,
        outage: Outage,
        backoff: wait_base | None,
        attempts: int | None,
    ) -> None:
        self.refused: APIStatusError | None = None
        """The endpoint's last refusal, if it gave one."""
        self._total_s, self._record, self._outage = total_s, record, outage
        self._backoff = backoff or wait_random_exponential(multiplier=0.5, max=20)
        self._attempts = attempts
        self._crowded = self._broken = 0
        self._down_s: float | None = None
        """Seconds for which nobody has answered there, at the last failure."""

    def run(self, again: Callable[[BaseException], bool]) -> AsyncRetrying:
        """Return the tries, which go on while `again` and the rest of the total allow it."""
        return AsyncRetrying(
            stop=self._is_enough,
            wait=self._pause,
            # `_note` is always true: it must hear of a failure that is not tried again, too.
            retry=retry_if_exception(lambda error: self._note(error) and again(error)),
            before_sleep=self._count_pause,
            reraise=True,
        )

    @property
    def left_s(self) -> float:
        """Seconds of the total that are left."""
        return self._total_s - self._record.spent_s

    def _note(self, error: BaseException) -> bool:
        """Note what a failure says of the endpoint."""
        self._down_s = None
        self._broken += isinstance(error, BrokenAnswer)
        if isinstance(error, APIStatusError):
            self.refused = error
        if isinstance(error.__cause__, httpx2.ConnectError):
            self._down_s = self._outage.note_silence()
        elif not isinstance(error, APIConnectionError):
            self._outage.note_answer()
        return True

    def _pause(self, state: RetryCallState) -> float:
        """Return the seconds until the next try: the endpoint's wish, and what keeps requests apart."""
        told, apart = _read_wish(state), self._backoff(state)
        if told is None:
            return min(apart, self.left_s / 2)
        return told + min(apart, max(0.0, self.left_s - told) / 2)

    def _is_enough(self, state: RetryCallState) -> bool:
        error = state.outcome.exception() if state.outcome is not None else None
        if self.left_s - state.upcoming_sleep < LEAST_LEFT * self._total_s:
            return True
        if self._down_s is not None and self._down_s + state.upcoming_sleep > self._total_s:
            return True
        nobody = isinstance(error, APIConnectionError) and not self._outage.has_answered
        waits = isinstance(error, APIStatusError) and error.status_code in BUSY_STATUS
        few = nobody or (is_before_the_run() and not waits)
        if self._broken >= FEW or (few and self._are_used_up(FEW, state)):
            return True
        return _read_wish(state) is None and self._are_used_up(self._attempts, state)

    def _are_used_up(self, attempts: int | None, state: RetryCallState) -> bool:
        return attempts is not None and state.attempt_number - self._record.crowded >= attempts

    def _count_pause(self, state: RetryCallState) -> None:
        """Count a pause, unless it is for a try that an adaptive limit let begin too early."""
        if self._record.crowded == self._crowded:
            self._record.paused_s += state.upcoming_sleep
        self._crowded = self._record.crowded


def is_transient(error: BaseException) -> bool:
    """Return whether a request that failed so is worth another try."""
    if isinstance(error, APIStatusError):
        return is_busy(error)
    if isinstance(error, APIConnectionError):
        return not name_trouble(error).lasts
    return isinstance(error, BrokenAnswer)


def is_busy(error: BaseException) -> bool:
    """Return whether an endpoint refused for the time being."""
    if not isinstance(error, APIStatusError) or not is_retryable(error.status_code):
        return False
    answer = error.response
    return error.status_code != 429 or not is_out_of_quota(read_object(answer), read_pause(answer.headers))


def is_broken_off(error: BaseException) -> bool:
    """Return whether the answer broke off, or the endpoint is busy: there is an endpoint all the same."""
    if is_busy(error) or isinstance(error, BrokenAnswer):
        return True
    there = isinstance(error, APIConnectionError) and not isinstance(error, APITimeoutError)
    return there and not isinstance(error.__cause__, httpx2.ConnectError)


def _read_wish(state: RetryCallState) -> float | None:
    """Return the seconds after which the server wants to be asked again, or None."""
    error = state.outcome.exception() if state.outcome is not None else None
    return read_pause(error.response.headers) if isinstance(error, APIStatusError) else None
