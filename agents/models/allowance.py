"""What an endpoint is asked at most: requests at once, and tokens in a minute."""

from __future__ import annotations

import asyncio
import time
from collections import deque
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, nullcontext

from pydantic import Field

from hallulab.scenarios.transcript import Frozen

WINDOW_S = 60.0
"""Seconds in which the tokens are counted."""

BYTES_PER_TOKEN = 3
"""Bytes of a request for one token of its prompt: fewer than there are, so that no limit is passed."""


class Limits(Frozen):
    """What one endpoint is asked at most."""

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
    """Lets requests to an endpoint begin, in the order in which they come, as its limits allow.

    Args:
        limits: the limits.
        clock: the time, in seconds.
        pause: waits for so many seconds.
    """

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
