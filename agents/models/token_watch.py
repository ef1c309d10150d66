"""Wait for a model that is served here as long as it works: while its server counts new tokens.

A busy machine answers late, and a limit in seconds would end requests that are being answered. vLLM tells at
`/metrics` how many tokens it has read and written.
Source: vLLM's documentation, "Production metrics".
"""

from __future__ import annotations

import asyncio
import math
import re
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager

import httpx2

STALLED_S = 120.0
"""Seconds without a new token after which a request is given up."""

READING_S = 900.0
"""The same while the server says that a request runs: it may read a batch of prompts, which count when all of
it is read. On a CPU that is up to 8,192 tokens: 200 seconds at 42 tokens a second, and several times as long
beside other work."""

LOOK_EVERY_S = 10.0
"""Seconds between two looks at the numbers."""

_READ_S = 30.0
"""Seconds that reading the numbers may take: a busy server is slow at that, too."""

_LARGEST = 4 << 20
"""Bytes of the numbers at most."""

_RUNNING = "vllm:num_requests_running"

_COUNTS = frozenset(
    {
        "vllm:generation_tokens_total",
        "vllm:prompt_tokens_total",
        "vllm:iteration_tokens_total_count",
        _RUNNING,
        "vllm:num_requests_waiting",
        "vllm:kv_cache_usage_perc",
        "vllm:gpu_cache_usage_perc",
    }
)
"""Numbers that change while a server works. The last two grow while a prompt is read, before it counts."""

_LINE = re.compile(r"^([a-z_:]{1,80})(?:\{[^\n]*\})? ([^\s]{1,40})", re.MULTILINE)

Counts = Mapping[str, float]


class StalledServer(httpx2.ReadTimeout):
    """The server works no more, or not on anything that it counts."""


class TokenWatch:
    """Watches whether one server works, for all requests to it together, by the numbers that it tells."""

    def __init__(self, read: Callable[[], Awaitable[Counts | None]]) -> None:
        self._read = read
        self._turn = asyncio.Lock()
        self._looks = 0
        self._idle = 0
        """Looks since the numbers changed. Seconds would count those in which this process was stopped."""
        self._told: Counts | None = None
        self._is_told = False

    @asynccontextmanager
    async def while_working(self, usual_s: float) -> AsyncIterator[None]:
        """End the block when the server has not worked for too long.

        Args:
            usual_s: the limit while the numbers cannot be read.

        Raises:
            StalledServer: it has not.
        """
        limit = asyncio.timeout(None)
        try:
            async with limit:
                watcher = asyncio.create_task(self._end_when_stalled(usual_s, limit))
                try:
                    yield
                finally:
                    watcher.cancel()
        except TimeoutError as error:
            if not limit.expired():
                raise
            raise StalledServer(f"no token for {self._choose_patience(usual_s):g} seconds") from error

    async def _end_when_stalled(self, usual_s: float, limit: asyncio.Timeout) -> None:
        waited = 0
        while True:
            seen = self._looks
            await asyncio.sleep(LOOK_EVERY_S)
            waited += 1
            async with self._turn:
                if self._looks == seen:  # else another request has looked
                    await self._look()
            if min(waited, self._idle) * LOOK_EVERY_S >= self._choose_patience(usual_s):
                limit.reschedule(asyncio.get_running_loop().time())
                return

    def _choose_patience(self, usual_s: float) -> float:
        """Return the seconds that nothing may be counted in."""
        if self._told is None or not self._is_told:
            return max(STALLED_S, usual_s)
        return READING_S if self._told.get(_RUNNING) else STALLED_S

    async def _look(self) -> None:
        told = await self._read()
        self._looks += 1
        self._is_told = told is not None
        self._idle = 0 if told is not None and told != self._told else self._idle + 1
        self._told = told if told is not None else self._told


async def read_counts(network: httpx2.AsyncBaseTransport, base_url: str) -> Counts | None:
    """Return what changes while a vLLM server works, from its URL ending in /v1; None: it cannot be read."""
    request = httpx2.Request("GET", f"{base_url.rstrip('/').removesuffix('/v1')}/metrics")
    read = bytearray()
    try:
        async with asyncio.timeout(_READ_S):
            response = await network.handle_async_request(request)
            try:
                async for chunk in response.aiter_bytes():
                    read += chunk
                    if len(read) > _LARGEST:
                        return None
            finally:
                await response.aclose()
    except (httpx2.HTTPError, OSError):  # a TimeoutError is an OSError
        return None
    return parse_counts(read.decode("utf-8", "replace")) if response.status_code == 200 else None


def parse_counts(text: str) -> Counts | None:
    """Return the numbers that change while a server works, summed over its engines; None: there are none."""
    counts: dict[str, float] = {}
    for name, told in _LINE.findall(text):
        if name in _COUNTS:
            try:
                value = float(told)
            except ValueError:
                continue
            if math.isfinite(value):
                counts[name] = counts.get(name, 0.0) + value
    return counts or None
