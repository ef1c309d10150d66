"""Several endpoints that serve the same model, behind the address of the first.

A conversation stays with one endpoint, because that has its prompts in the prefix cache. A new one goes to
the endpoint with the fewest. One that fails rests, longer each time; its conversations move to others.
Recordings and results know the first address only: who answers decides nothing.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass

import httpx2

FIRST_REST_S = 1.0
LONGEST_REST_S = 60.0
"""Seconds for which an endpoint rests after a failure: twice as long after each further one, at most."""


@dataclass
class Replica:
    """One endpoint."""

    base_url: str
    """Its address."""
    stays: int = 0
    """Conversations that stay with it."""
    under_way: int = 0
    """Requests that it has not answered yet."""
    answered: int = 0
    """Requests that it answered."""
    failed: int = 0
    """Requests that it did not answer, or refused for the time being."""
    failures: int = 0
    """Failures since its last answer."""
    rests_until: float = 0.0
    """Time until which it gets no request if others can."""

    def told(self) -> str:
        """Return what it did, for a person."""
        failed = f", and failed {self.failed} times" if self.failed else ""
        return f"{self.base_url} answered {self.answered} requests{failed}."


@dataclass
class _Stay:
    """Where a conversation stays; nowhere before its first request."""

    replica: Replica | None = None


_stay: ContextVar[_Stay | None] = ContextVar("stay", default=None)


@contextmanager
def staying() -> Iterator[None]:
    """Let all requests of the block, and of tasks that it starts, stay with one endpoint."""
    stay = _Stay()
    token = _stay.set(stay)
    try:
        yield
    finally:
        _stay.reset(token)
        if stay.replica is not None:
            stay.replica.stays -= 1


class Replicas(httpx2.AsyncBaseTransport):
    """A transport that shares out the requests to the first of several addresses among all of them.

    Args:
        base_urls: the addresses, at least one.
        inner: sends the requests.
        clock: the time, in seconds.
    """

    def __init__(
        self,
        base_urls: Sequence[str],
        inner: httpx2.AsyncBaseTransport,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.replicas = tuple(Replica(url.rstrip("/")) for url in base_urls)
        """The endpoints, with what they did."""
        self._inner = inner
        self._clock = clock

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        """Send a request to the endpoint of its conversation."""
        first, _, path = str(request.url).partition(self.replicas[0].base_url)
        if first or not path.startswith("/") or request.method == "GET":
            return await self._inner.handle_async_request(request)
        replica = self.chosen()
        elsewhere = httpx2.Request(
            request.method,
            f"{replica.base_url}{path}",
            headers={name: value for name, value in request.headers.items() if name.lower() != "host"},
            content=await request.aread(),
        )
        replica.under_way += 1
        try:
            response = await self._inner.handle_async_request(elsewhere)
        except BaseException:
            self._fails(replica, None)
            raise
        finally:
            replica.under_way -= 1
        if response.status_code == 429 or response.status_code >= 500:
            self._fails(replica, response.headers.get("Retry-After"))
        else:
            replica.answered += 1
            replica.failures = 0
        return response

    def chosen(self) -> Replica:
        """Return the endpoint for a request: the conversation's own, unless only others do not rest."""
        stay, now = _stay.get(), self._clock()
        if stay is not None and stay.replica is not None and stay.replica.rests_until <= now:
            return stay.replica
        awake = [one for one in self.replicas if one.rests_until <= now]
        if awake:
            found = min(awake, key=lambda one: (one.stays, one.under_way, one.answered))
        else:
            found = min(self.replicas, key=lambda one: one.rests_until)
        if stay is not None and stay.replica is not found:
            if stay.replica is not None:
                stay.replica.stays -= 1
            stay.replica = found
            found.stays += 1
        return found

    def _fails(self, replica: Replica, retry_after: str | None) -> None:
        replica.failed += 1
        rest = min(FIRST_REST_S * 2.0 ** min(replica.failures, 10), LONGEST_REST_S)
        if retry_after is not None and retry_after.isdecimal():
            rest = max(rest, min(float(retry_after), LONGEST_REST_S))
        replica.failures += 1
        replica.rests_until = self._clock() + rest

    async def aclose(self) -> None:
        """Close the connections."""
        await self._inner.aclose()
