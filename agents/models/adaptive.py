"""Adaptive concurrency: how many requests each endpoint is asked at once, found out from its answers.

The limit doubles while the endpoint keeps up, then it grows by one and is cut where the endpoint refuses
(additive increase, multiplicative decrease, as TCP). It lies beside all other limits and retries.
"""

from __future__ import annotations

import asyncio
import math
import statistics
import time
from collections import defaultdict, deque
from collections.abc import Awaitable, Callable, Hashable, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, field
from typing import Literal

import httpx2

from hallulab.agents.models.answers import ModelError
from hallulab.agents.models.endpoints import normalize_url

AUTO: Literal["auto"] = "auto"
"""Stands for a number that is found out."""

START = 20
"""Requests that an endpoint is asked at once at first."""

MOST = 512
"""Requests that an endpoint is asked at once at most."""

CUT = 0.8
"""Share of the limit that is left after a refusal."""

COOL_DOWN_S = 15.0
"""Seconds after a cut in which the limit is neither cut again nor grows."""

REFUSED_S = 1.0
"""Seconds for which the place of a refused request stays taken, so that nobody hammers the endpoint."""

LEAST_GAIN = 1.1
SLOWER = 1.5
"""The knee: like requests take more than `SLOWER` times as long as at a lower limit, and so many at once give
less than `LEAST_GAIN` times as many answers a second."""

_ENDING = "/chat/completions"

Answer = tuple[httpx2.Response, float]
"""A response and its seconds."""


class ResizableGate:
    """Admits so many at once, in the order in which they come. The number may change."""

    def __init__(self, number: int) -> None:
        self.number = number
        """How many there are; those that are taken stay so, whatever it becomes."""
        self._taken = 0
        self._waiting: deque[asyncio.Future[None]] = deque()

    def resize(self, number: int) -> None:
        """Change how many there are."""
        self.number = number
        self._admit()

    async def __aenter__(self) -> None:
        if self._taken < self.number and not self._waiting:
            self._taken += 1
            return
        mine = asyncio.get_running_loop().create_future()
        self._waiting.append(mine)
        try:
            await mine
        except asyncio.CancelledError:
            if not mine.cancelled():  # it got its place at the moment of being cancelled
                self._taken -= 1
            self._admit()
            raise

    async def __aexit__(self, *error: object) -> None:
        self._taken -= 1
        self._admit()

    def _admit(self) -> None:
        while self._waiting and (self._waiting[0].done() or self._taken < self.number):
            mine = self._waiting.popleft()
            if not mine.done():
                self._taken += 1
                mine.set_result(None)


@dataclass(frozen=True)
class ReachedLimit:
    """How many requests an endpoint was asked at once in the end."""

    base_url: str
    start: int
    limit: int
    cuts: int

    def describe(self) -> str:
        """Say it in one line."""
        times = {1: "once", 2: "twice"}.get(self.cuts, f"{self.cuts} times")
        cut = f", cut {times} by 429" if self.cuts else ""
        return f"concurrency at {self.base_url}: {self.start} → {self.limit}{cut}"


@dataclass
class _Round:
    """As many answers as the limit, to requests that began at that limit."""

    seconds: defaultdict[Hashable, list[float]] = field(default_factory=lambda: defaultdict(list))
    """Kind of request → seconds of the answers."""
    full: bool = False
    """True if as many requests as the limit were under way at some time."""
    clean: bool = True
    """True if every request was answered."""


class AdaptiveLimit:
    """How many requests one endpoint is asked at once.

    Args:
        start: at first.
        clock: the time, in seconds.
    """

    def __init__(
        self,
        start: int = START,
        most: int = MOST,
        clock: Callable[[], float] = time.monotonic,
        pause: Callable[[float], Awaitable[None]] = asyncio.sleep,
        on_change: Callable[[], None] = lambda: None,
    ) -> None:
        self.start = start
        self.cuts = 0
        self._most, self._clock, self._pause, self._on_change = most, clock, pause, on_change
        self._places = ResizableGate(start)
        self._round = _Round()
        self._doubles = True
        self._cool_until = -math.inf
        self._usual: dict[Hashable, tuple[int, float]] = {}
        """Kind of request → a limit at which the endpoint kept up, and the median of the seconds then."""
        self._sent: dict[object, float] = {}
        """When each request began that is under way."""
        self._last_answer = -math.inf

    @property
    def limit(self) -> int:
        """How many it is now."""
        return self._places.number

    async def ask(
        self,
        kind: Hashable,
        allowance: AbstractAsyncContextManager[None],
        send: Callable[[], Awaitable[Answer]],
    ) -> tuple[Answer, bool]:
        """Send a request as soon as it may begin.

        Args:
            kind: equal for requests that are alike, so that their seconds can be compared.
            allowance: the endpoint's other limits.

        Returns:
            The answer, and whether it was refused only because too much was under way: the endpoint answers
            others.
        """
        async with self._places:
            async with allowance:
                began, this = self._round, object()
                self._sent[this] = self._clock()
                began.full = began.full or len(self._sent) >= self.limit
                try:
                    response, seconds = await send()
                except (httpx2.RequestError, ModelError):
                    self._round.clean = False
                    raise
                finally:
                    del self._sent[this]
            if not is_refused(response):
                self._take(response.status_code, began, kind, seconds)
                return (response, seconds), False
            crowded = self._answers_others()
            self._refuse()
            await self._pause(REFUSED_S)
            return (response, seconds), crowded

    def _answers_others(self) -> bool:
        """Return whether the endpoint has answered of late, or has kept a request for a while."""
        now = self._clock()
        kept = next(iter(self._sent.values()), math.inf)
        return self._last_answer >= now - COOL_DOWN_S or kept <= now - REFUSED_S

    def _refuse(self) -> None:
        self._round.clean = False
        self._doubles = False
        now = self._clock()
        # Those that were under way at a cut are refused with it: they are one refusal.
        if now >= self._cool_until:
            self._cool_until = now + COOL_DOWN_S
            self.cuts += 1
            self._change(int(self.limit * CUT))

    def _take(self, status: int, began: _Round, kind: Hashable, seconds: float) -> None:
        """Count an answer; at the end of a round, change the limit."""
        if status >= 500:
            self._round.clean = False
            return
        self._last_answer = self._clock()
        if began is not self._round:
            return
        began.seconds[kind].append(seconds)
        if sum(map(len, began.seconds.values())) >= self.limit:
            self._round = _Round()
            if began.full and began.clean and self._clock() >= self._cool_until:
                self._grow(began)

    def _grow(self, ended: _Round) -> None:
        medians = {kind: statistics.median(seconds) for kind, seconds in ended.seconds.items()}
        gain, slower = self._compare(ended, medians)
        now = {kind: (self.limit, median) for kind, median in medians.items()}
        if not self._doubles:
            self._usual = {**now, **self._usual}
            if slower <= SLOWER:
                self._change(self.limit + 1)
        elif slower > SLOWER and gain < LEAST_GAIN:
            self._doubles = False
            self._change(self.limit // 2)
        else:
            self._usual |= now
            self._change(self.limit * 2)

    def _compare(self, ended: _Round, medians: dict[Hashable, float]) -> tuple[float, float]:
        """Compare a round with the usual seconds of like requests.

        Returns:
            How many times as many answers a second there are, and how many times as long one takes. By
            Little's law the former is how many times as many are under way, by the latter.
        """
        gains, slower, weight = 0.0, 0.0, 0
        for kind, median in medians.items():
            if kind in self._usual:
                limit, usual = self._usual[kind]
                number = len(ended.seconds[kind])
                ratio = math.log(max(median, 1e-6) / max(usual, 1e-6))
                slower += number * ratio
                gains += number * (math.log(self.limit / limit) - ratio)
                weight += number
        if not weight:
            return math.inf, 1.0
        return math.exp(gains / weight), math.exp(slower / weight)

    def _change(self, limit: int) -> None:
        self._round = _Round()
        self._places.resize(min(self._most, max(1, limit)))
        self._on_change()


class AdaptiveLimits:
    """The limits of all endpoints, each of its own.

    Args:
        base_urls: the endpoints that are going to be asked; others are found when they are asked.
        sharers: how many processes ask them at once; each has its part.
        clock: the time, in seconds.
    """

    def __init__(
        self,
        base_urls: Sequence[str] = (),
        sharers: int = 1,
        clock: Callable[[], float] = time.monotonic,
        pause: Callable[[float], Awaitable[None]] = asyncio.sleep,
    ) -> None:
        self._start, self._most = max(1, START // sharers), max(1, MOST // sharers)
        self._clock, self._pause = clock, pause
        self._following: list[ResizableGate] = []
        self._limits: dict[str, AdaptiveLimit] = {}
        for base_url in base_urls:
            self.get(base_url)

    def get(self, url: str) -> AdaptiveLimit:
        """Return the limit of the endpoint that an address belongs to."""
        base_url = normalize_url(url).removesuffix(_ENDING)
        if base_url not in self._limits:
            self._limits[base_url] = AdaptiveLimit(
                self._start, self._most, self._clock, self._pause, self._resize
            )
            self._resize()
        return self._limits[base_url]

    def make_places(self) -> ResizableGate:
        """Make places for work that asks: twice as many as all limits together, and `MOST` at most.

        Work does not ask all the time, so with fewer places no limit would be reached.
        """
        places = ResizableGate(self._count_places())
        self._following.append(places)
        return places

    def list_reached(self) -> list[ReachedLimit]:
        """Return what the limits have come to."""
        return [
            ReachedLimit(base_url, limit.start, limit.limit, limit.cuts)
            for base_url, limit in self._limits.items()
        ]

    def _count_places(self) -> int:
        return min(self._most, 2 * max(self._start, sum(limit.limit for limit in self._limits.values())))

    def _resize(self) -> None:
        for places in self._following:
            places.resize(self._count_places())


class AdaptiveTransport(httpx2.AsyncBaseTransport):
    """Carries the limits to the `ModelTransport` above it, which heeds them before it sends."""

    def __init__(self, limits: AdaptiveLimits, inner: httpx2.AsyncBaseTransport) -> None:
        self.limits = limits
        self._inner = inner

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        """See `httpx2.AsyncBaseTransport`."""
        return await self._inner.handle_async_request(request)

    async def aclose(self) -> None:
        """Close the connections."""
        await self._inner.aclose()


def join_reached(parts: Sequence[Sequence[ReachedLimit]]) -> list[ReachedLimit]:
    """Add up what several processes' limits have come to, by endpoint."""
    joined: dict[str, ReachedLimit] = {}
    for one in (one for part in parts for one in part):
        before = joined.get(one.base_url, ReachedLimit(one.base_url, 0, 0, 0))
        joined[one.base_url] = ReachedLimit(
            one.base_url, before.start + one.start, before.limit + one.limit, before.cuts + one.cuts
        )
    return list(joined.values())


def is_refused(response: httpx2.Response) -> bool:
    """Return whether an endpoint refuses a request because it has too many."""
    status = response.status_code
    return status == 429 or (status == 503 and "Retry-After" in response.headers)
