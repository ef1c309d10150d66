"""Endpoints of a model: their addresses, abilities and limits, and the replicas that share its requests.

Several endpoints that serve the same model, behind the address of the first.
A conversation stays with one endpoint, because that has its prompts in the prefix cache. A new one goes to
the endpoint with the fewest. One that fails rests, longer each time; its conversations move to others.
Recordings and results know the first address only: who answers decides nothing.
"""

from __future__ import annotations

import asyncio
import ipaddress
import math
import os
import time
from collections import deque
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Sequence
from contextlib import asynccontextmanager, contextmanager, nullcontext
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Annotated, Literal
from urllib.parse import urlsplit

import httpx2
from pydantic import AfterValidator, Field

from hallulab.agents.models.answers import ModelError
from hallulab.scenarios.errors import UsageError
from hallulab.scenarios.transcript import Frozen

NO_KEY = "EMPTY"
"""Sent as the key if none is needed, as other clients do."""


@dataclass(frozen=True)
class Endpoint:
    """Where a model is served."""

    model: str
    """The server's name of the model."""
    base_url: str = ""
    """OpenAI-compatible base URL, ending in `/v1`. Empty: our server is not up yet (`ModelPool.bind`), or a
    replay needs none."""
    api_key_env: str | None = None
    """Environment variable that holds the key. None: OPENAI_API_KEY for a remote host, no key on loopback."""

    @property
    def variable(self) -> str | None:
        """The environment variable whose value is sent as the key; None: no key is."""
        if self.api_key_env is None and (not self.base_url or is_loopback(self.base_url)):
            return None
        return self.api_key_env or "OPENAI_API_KEY"

    def api_key(self) -> str:
        """Read the key from the environment at the moment of use; it is never stored or logged.

        Raises:
            UsageError: the variable is not set, or its value does not fit into a header.
        """
        variable = self.variable
        if variable is None:
            return NO_KEY
        key = os.environ.get(variable, "").strip()
        if not key:
            raise UsageError(
                f"{self.base_url or self.model} needs an API key: set the environment variable {variable}."
            )
        if not key.isascii() or not key.isprintable() or " " in key:
            raise UsageError(
                f"the environment variable {variable} holds no API key: there are spaces, letters beyond "
                "ASCII or control characters in it. Set it to the key alone."
            )
        return key


SCRIPTED = "scripted"
"""Scheme of the addresses of scripted models, which answer in this process (`hallulab.testing.scripted`)."""


def is_loopback(base_url: str) -> bool:
    """Return whether an address is on this machine, where no key is needed."""
    if base_url.startswith(f"{SCRIPTED}://"):
        return True
    host = urlsplit(base_url).hostname or ""
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


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


FIRST_REST_S = 1.0
LONGEST_REST_S = 60.0
"""Seconds for which an endpoint rests after a failure: twice as long after each further one, at most."""


class Answered(Frozen):
    """What an endpoint did, in all runs of an experiment so far."""

    base_url: str
    """Its address."""
    answered: int = Field(default=0, ge=0)
    """Requests that it answered."""
    failed: int = Field(default=0, ge=0)
    """Requests that it did not answer, or refused for the time being."""


@dataclass
class Replica:
    """One endpoint."""

    base_url: str
    """Its address."""
    allowance: RateLimit
    """Lets requests to it begin."""
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
    rests_from: float = -math.inf
    """Time of the failure for which it rests, or rested last."""
    rests_until: float = 0.0
    """Time until which it gets no request if others can."""

    @property
    def did(self) -> Answered:
        """What it did."""
        return Answered(base_url=self.base_url, answered=self.answered, failed=self.failed)


@dataclass
class _StickySession:
    """Where a conversation stays; nowhere before its first request."""

    replica: Replica | None = None


_stay: ContextVar[_StickySession | None] = ContextVar("stay", default=None)


@contextmanager
def staying() -> Iterator[None]:
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
    """Who is asked."""
    request: httpx2.Request
    """The request, to its address."""
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
        self.replicas = tuple(Replica(normal(url), RateLimit(own)) for url in base_urls)
        """The endpoints, with what they did."""
        self._clock = clock

    @contextmanager
    def asking(self, request: httpx2.Request) -> Iterator[PendingRequest | None]:
        """Yield the request to the endpoint that is asked; None if the address is another one.

        The block sends it, and tells the status when it has read the whole answer. No answer is a failure,
        and so is one that says that the endpoint cannot answer. A cancelled request counts as nothing.
        """
        first, _, path = str(request.url).partition(self.replicas[0].base_url)
        if first or not path.startswith("/"):
            yield None
            return
        replica = self.chosen()
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
        if asking.status is not None and _cannot_answer(asking.status):
            self._fails(replica, began, asking.retry_after)
        elif asking.status is not None:
            replica.answered += 1
            replica.failures = 0

    def others_are_awake(self) -> bool:
        """Return whether a request need not wait for the endpoint that asked for a pause."""
        return any(one.rests_until <= self._clock() for one in self.replicas)

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

    def _fails(self, replica: Replica, began: float, retry_after: float | None) -> None:
        now = self._clock()
        replica.failed += 1
        # Requests that were under way when it failed fail with it: that is one failure, and no longer rest.
        if began >= replica.rests_from:
            rest = min(FIRST_REST_S * 2.0 ** min(replica.failures, 10), LONGEST_REST_S)
            replica.failures += 1
            replica.rests_from, replica.rests_until = now, now + rest
        wished = now + min(retry_after or 0.0, LONGEST_REST_S)
        replica.rests_until = max(replica.rests_until, wished)


def normal(url: str) -> str:
    """Return an address in its usual form: small letters in the host, no usual port, no slash at the end."""
    return str(httpx2.URL(url)).rstrip("/")


def _cannot_answer(status: int) -> bool:
    """Return whether a status is about the endpoint (busy, broken, another model), not the request."""
    return status >= 500 or status in (401, 403, 404, 408, 409, 425, 429)


def _without_secrets(url: str) -> str:
    # The URL is not parsed: a password with a slash would look like part of the path.
    if "@" in url or "?" in url:
        raise ValueError(
            "a URL with `@` or `?` may hold a password, and it stands in the report; put the key into an "
            "environment variable and name that in `api_key_env`"
        )
    return url


def _with_scheme_and_host(url: str) -> str:
    try:
        parts = urlsplit(url)
        httpx2.URL(url)  # whoever sends has to read it, too
        known = parts.scheme in ("http", "https", SCRIPTED) and bool(parts.hostname) and parts.port != 0
    except (ValueError, httpx2.InvalidURL):
        known = False
    if not known or any(letter.isspace() for letter in url):
        raise ValueError(
            f"{url!r} is no address; give one with `http://` or `https://` and a host, such as "
            "http://localhost:8000/v1"
        )
    return url


BaseUrl = Annotated[str, AfterValidator(_without_secrets), AfterValidator(_with_scheme_and_host)]
"""A base URL with scheme and host, ending in `/v1`, without user name, password and query."""


SeedUse = Literal["kept", "ignored", "refused"]


class Capabilities(Frozen):
    """The abilities of one model at its endpoint, as found by `hallulab.agents.models.probe`."""

    log_probabilities: bool = True
    """Whether it gives log-probabilities of tokens. Without them a decision is the printed word."""
    seed: SeedUse = "kept"
    """Whether equal seeds give equal answers, have no effect, or must not be sent."""
    json_schema: bool = True
    """Whether it can make answers follow a JSON schema. Else the prompt asks for JSON, and the answer is
    searched for it."""
    function_calls: bool = False
    """Whether its model hands messages over by calling functions; assumed only where it was seen."""
    asked: bool = False
    """Whether the endpoint was asked. Else it is assumed to have all abilities: a replayed recording may be
    older than the question, or the endpoint did not answer it."""


class ReadHow(Capabilities):
    """How a model's answers were read in a run: an entry of `read_how` in `experiment.json`."""

    model: str
    """Its served name."""
    decision_samples: int = Field(default=1, ge=1)
    """Printed words per decision, if the endpoint gives no log-probabilities."""
