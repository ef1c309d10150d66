"""Several endpoints that serve the same model, behind the address of the first, and their limits.

A conversation stays with one endpoint, because that has its prompts in the prefix cache. A new one goes to
the endpoint with the fewest. One that fails rests, longer each time; its conversations move to others.
Recordings and results know the first address only: who answers decides nothing.
"""

from __future__ import annotations

import asyncio
import math
import time
from collections import deque
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Sequence
from contextlib import asynccontextmanager, contextmanager, nullcontext
from contextvars import ContextVar
from dataclasses import dataclass

import httpx2
from pydantic import Field

from hallulab.agents.models.answers import ModelError
from hallulab.agents.models.endpoints import normalize_url
from hallulab.scenarios.transcript import Frozen

WINDOW_S = 60.0
"""Seconds in which the tokens are counted."""

BYTES_PER_TOKEN = 3
"""Bytes of a request for one token of its prompt: fewer than there are, so that no limit is passed."""


class Limits(Frozen):
    """Limits of one endpoint."""

    requests: int | None = Field(default=None, ge=1)
    """Requests under way at once; None: no limit."""
    tokens_per_minute: int | None = Field(default=None, ge=1)
    """Tokens of all requests that begin within any minute, read and written; None: no limit."""

    def shared_by(self, number: int) -> Limits:
        """Return the part of one of so many processes; at least one request and one token."""
        requests, tokens = self.requests, self.tokens_per_minute
        return Limits(
            requests=requests and max(1, requests // number),
            tokens_per_minute=tokens and max(1, tokens // number),
        )


def most_tokens(content: bytes, max_tokens: int) -> int:
    """Return how many tokens a request may take: its prompt by its length, and all that may be written."""
    return len(content) // BYTES_PER_TOKEN + max_tokens


class RateLimit:
    """Lets requests to an endpoint begin, in the order in which they come, as its limits allow."""

    def __init__(
        self,
        limits: Limits,
        clock: Callable[[], float] = time.monotonic,
        pause: Callable[[float], Awaitable[None]] = asyncio.sleep,
    ) -> None:
        self._at_once = asyncio.Semaphore(limits.requests) if limits.requests else nullcontext()
        self._most = limits.tokens_per_minute
        self._turn = asyncio.Lock()
        self._begun: deque[tuple[float, int]] = deque()
        """When requests of the last minute began, and their tokens."""
        self._clock, self._pause = clock, pause

    @asynccontextmanager
    async def spending(self, tokens: int) -> AsyncIterator[None]:
        """Wait until a request of so many tokens may begin; it ends with the block.

        A request of more tokens than the limit waits until none has begun for a minute.
        """
        async with self._at_once:
            if self._most is not None:
                async with self._turn:
                    await self._begin(min(tokens, self._most), self._most)
            yield

    async def _begin(self, tokens: int, most: int) -> None:
        while True:
            now = self._clock()
            while self._begun and self._begun[0][0] + WINDOW_S <= now:
                self._begun.popleft()
            if sum(spent for _, spent in self._begun) + tokens <= most:
                self._begun.append((now, tokens))
                return
            await self._pause(self._begun[0][0] + WINDOW_S - now)


FIRST_COOLDOWN_S = 1.0
LONGEST_COOLDOWN_S = 60.0
"""Seconds for which an endpoint rests after a failure: twice as long after each further one, at most."""


class Answered(Frozen):
    """Counts of an endpoint, of all runs of an experiment so far."""

    base_url: str
    answered: int = Field(default=0, ge=0)
    failed: int = Field(default=0, ge=0)
    """Requests that it did not answer, or refused for the time being."""


@dataclass
class Replica:
    """One endpoint."""

    base_url: str
    allowance: RateLimit
    """Lets requests to it begin."""
    stays: int = 0
    """Conversations that stay with it."""
    under_way: int = 0
    """Requests that it has not answered yet."""
    answered: int = 0
    failed: int = 0
    """Requests that it did not answer, or refused for the time being."""
    failures: int = 0
    """Failures since its last answer."""
    cooldown_from: float = -math.inf
    """Time of the failure for which it rests, or rested last."""
    cooldown_until: float = 0.0
    """Time until which it gets no request if others can."""

    @property
    def did(self) -> Answered:
        """Its counts."""
        return Answered(base_url=self.base_url, answered=self.answered, failed=self.failed)


@dataclass
class _StickySession:
    """Where a conversation stays; nowhere before its first request."""

    replica: Replica | None = None


_stay: ContextVar[_StickySession | None] = ContextVar("stay", default=None)


@contextmanager
def sticky_session() -> Iterator[None]:
    """Let all requests of the block, and of tasks that it starts, stay with one endpoint."""
    stay = _StickySession()
    token = _stay.set(stay)
    try:
        yield
    finally:
        _stay.reset(token)
        if stay.replica is not None:
            stay.replica.stays -= 1


@dataclass
class PendingRequest:
    """A request under way."""

    replica: Replica
    request: httpx2.Request
    status: int | None = None
    """Status of the answer, once it is there as a whole."""
    retry_after: float | None = None
    """Seconds after which the endpoint wants to be asked again, or None if it does not say."""


class Replicas:
    """Shares out the requests to the first of several addresses among all of them.

    Args:
        base_urls: the addresses, at least one.
        clock: the time, in seconds.
        limits: what each is asked at most; None: no limit.
    """

    def __init__(
        self,
        base_urls: Sequence[str],
        clock: Callable[[], float] = time.monotonic,
        limits: Limits | None = None,
    ) -> None:
        own = limits or Limits()
        self.replicas = tuple(Replica(normalize_url(url), RateLimit(own)) for url in base_urls)
        """The endpoints, with what they did."""
        self._clock = clock

    @contextmanager
    def request_to(self, request: httpx2.Request) -> Iterator[PendingRequest | None]:
        """Yield the request to the endpoint that is asked; None if the address is another one.

        The block sends it, and tells the status when it has read the whole answer. No answer is a failure,
        and so is one that says that the endpoint cannot answer. A cancelled request counts as nothing.
        """
        first, _, path = str(request.url).partition(self.replicas[0].base_url)
        if first or not path.startswith("/"):
            yield None
            return
        replica = self.pick_replica()
        headers = {name: value for name, value in request.headers.items() if name.lower() != "host"}
        url = f"{replica.base_url}{path}"
        asking = PendingRequest(
            replica, httpx2.Request(request.method, url, headers=headers, content=request.read())
        )
        replica.under_way += 1
        began = self._clock()
        try:
            yield asking
        except (httpx2.RequestError, ModelError):
            self._fails(replica, began, None)
            raise
        finally:
            replica.under_way -= 1
        # These statuses are about the endpoint (busy, broken, another model), not the request.
        if asking.status is not None and (
            asking.status >= 500 or asking.status in (401, 403, 404, 408, 409, 425, 429)
        ):
            self._fails(replica, began, asking.retry_after)
        elif asking.status is not None:
            replica.answered += 1
            replica.failures = 0

    def has_available_replica(self) -> bool:
        """Return whether a request need not wait for the endpoint that asked for a pause."""
        return any(one.cooldown_until <= self._clock() for one in self.replicas)

    def pick_replica(self) -> Replica:
        """Return the endpoint for a request: the conversation's own, unless only others do not rest."""
        stay, now = _stay.get(), self._clock()
        if stay is not None and stay.replica is not None and stay.replica.cooldown_until <= now:
            return stay.replica
        awake = [one for one in self.replicas if one.cooldown_until <= now]
        if awake:
            found = min(awake, key=lambda one: (one.stays, one.under_way, one.answered))
        else:
            found = min(self.replicas, key=lambda one: one.cooldown_until)
        if stay is not None and stay.replica is not found:
            if stay.replica is not None:
                stay.replica.stays -= 1
            stay.replica = found
            found.stays += 1
        return found

    def _fails(self, replica: Replica, began: float, retry_after: float | None) -> None:
        now = self._clock()
        replica.failed += 1
        # Requests that were under way when it failed fail with it: that is one failure, and no longer rest.
        if began >= replica.cooldown_from:
            rest = min(FIRST_COOLDOWN_S * 2.0 ** min(replica.failures, 10), LONGEST_COOLDOWN_S)
            replica.failures += 1
            replica.cooldown_from, replica.cooldown_until = now, now + rest
        wished = now + min(retry_after or 0.0, LONGEST_COOLDOWN_S)
        replica.cooldown_until = max(replica.cooldown_until, wished)
