"""What adaptive concurrency gains over fixed numbers, at a stub endpoint.

`python -m benchmarks.adaptive` asks the same requests of endpoints that are busy in different ways: with a
fixed 16, with `auto`, and with each of several fixed numbers, the best of which is kept. All readings of an
endpoint are taken one after the other. The last line of the output is one JSON object.
"""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

import httpx2
from tenacity import wait_random_exponential

from benchmarks.command import build_parser, format_table
from hallulab.agents.models.adaptive import MOST, AdaptiveLimits, AdaptiveTransport
from hallulab.agents.models.answers import ModelError
from hallulab.agents.models.endpoints import Endpoint
from hallulab.agents.models.model import ModelPool
from hallulab.agents.models.prompt import ChatMessage
from hallulab.agents.models.transport import make_network

FIXED = 16
"""The number that is fixed where nothing is found out."""

NUMBERS = (FIXED, 32, 64, 128, 256)
"""Fixed numbers, the best of which is kept."""


@dataclass(frozen=True)
class Busy:
    """An endpoint, as `tests.kit.busy_endpoint` takes it."""

    name: str
    seconds: float
    capacity: int
    most: int


ENDPOINTS = (
    Busy("answers 64 at once, others wait", 0.5, 64, 0),
    Busy("refuses a 97th request", 0.5, 96, 96),
)
"""The endpoints that are measured."""


@dataclass(frozen=True)
class Reading:
    """What one way of asking took."""

    seconds: float
    lost: int
    """Requests that got no answer."""
    limit: int
    """Requests under way at once in the end."""


@contextmanager
def serve(busy: Busy) -> Iterator[str]:
    """Serve an endpoint from a process of its own; yield its base URL."""
    numbers = (str(busy.seconds), str(busy.capacity), str(busy.most))
    command = [sys.executable, "-m", "tests.kit.busy_endpoint", *numbers]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        try:
            yield f"http://127.0.0.1:{int(process.stdout.readline())}/v1"
        finally:
            process.terminate()


async def measure(base_url: str, requests: int, number: int | None) -> Reading:
    """Ask so many requests, `number` at once; None: as many as are found out."""
    network: httpx2.AsyncBaseTransport = make_network()
    limits = AdaptiveLimits([base_url]) if number is None else None
    pool = ModelPool(
        {"default": Endpoint("stub", base_url)},
        concurrency=number or MOST,
        transport=AdaptiveTransport(limits, network) if limits else network,
        backoff=wait_random_exponential(multiplier=0.5, max=20),
    )
    session = pool.session("benchmark")

    async def ask(one: int) -> bool:
        try:
            await session.text("step", [ChatMessage("user", f"Question {one}?")], max_tokens=90)
        except ModelError:
            return False
        return True

    started = time.perf_counter()
    answered = sum(await asyncio.gather(*map(ask, range(requests))))
    seconds = time.perf_counter() - started
    await pool.close()
    limit = limits.list_reached()[0].limit if limits else number or 0
    return Reading(seconds, requests - answered, limit)


async def compare(busy: Busy, requests: int, numbers: Sequence[int] = NUMBERS) -> dict[str, float]:
    """Measure an endpoint in all ways; the first of the fixed numbers is the one to compare with.

    Returns:
        The seconds, their ratios, what `auto` came to, and the requests that were lost. The best fixed number
        loses none.
    """
    with serve(busy) as base_url:
        await measure(base_url, 1, 1)  # imports
        found = {number: await measure(base_url, requests, number) for number in numbers}
        auto = await measure(base_url, requests, None)
    whole = {number: reading for number, reading in found.items() if not reading.lost}
    best = min(whole, key=lambda number: whole[number].seconds)
    return {
        "fixed_s": round(found[numbers[0]].seconds, 2),
        "auto_s": round(auto.seconds, 2),
        "best_s": round(found[best].seconds, 2),
        "best_number": best,
        "auto_limit": auto.limit,
        "auto_lost": auto.lost,
        "lost_at_most_fixed": found[numbers[-1]].lost,
        "fixed_over_auto": round(found[numbers[0]].seconds / auto.seconds, 2),
        "best_over_auto": round(found[best].seconds / auto.seconds, 2),
    }


async def main() -> None:
    """Measure, and print the table."""
    parser = build_parser("adaptive", __doc__)
    parser.add_argument("--requests", type=int, default=2000, help="how many are asked of each endpoint")
    options = parser.parse_args()
    results = {busy.name: await compare(busy, options.requests) for busy in ENDPOINTS}
    columns = [f"{FIXED}, s", "auto, s", "best fixed, s", "auto comes to"]
    rows = [
        [
            name,
            f"{found['fixed_s']:.1f}",
            f"{found['auto_s']:.1f}",
            f"{found['best_s']:.1f} ({found['best_number']})",
            str(found["auto_limit"]),
        ]
        for name, found in results.items()
    ]
    print(format_table(["endpoint", *columns], rows))
    print(json.dumps(results))


if __name__ == "__main__":
    asyncio.run(main())
