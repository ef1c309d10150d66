"""Measure the cost of the runner: `python -m benchmarks.orchestration`.

A whole experiment (five chatbots, two detectors) runs against an instant stub endpoint in another process.
Its model calls a second are divided by those of a bare loop of the openai client in the same process and run.

The last line of the output is a JSON object.
"""

from __future__ import annotations

import asyncio
import gc
import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx2
from openai import AsyncOpenAI

from benchmarks.command import build_parser
from hallulab.agents.models.transport import make_network
from hallulab.simulator.cli.main import COLLECTED_AFTER
from hallulab.simulator.engine.models import RunSettings
from hallulab.simulator.engine.run import run_experiment
from hallulab.simulator.records.experiment import Experiment
from hallulab.simulator.records.folder import RunFolder

CONCURRENCY = 16

PERSONAS = 24
"""Each has five conversations. So many make the start of a run weigh no more than in a real one."""


Body = dict[str, Any]


class RequestLog(httpx2.AsyncBaseTransport):
    """Send requests, and keep the body of each."""

    def __init__(self) -> None:
        self._sent: list[bytes] = []
        self._network = make_network()

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        """Send a request; see `httpx2.AsyncBaseTransport`."""
        if request.method == "POST":
            self._sent.append(request.content)
        return await self._network.handle_async_request(request)

    async def aclose(self) -> None:
        """Close the connections."""
        await self._network.aclose()

    def bodies(self) -> list[Body]:
        """Return the bodies. They are parsed only here, because that is none of the runner's work."""
        return [json.loads(body) for body in self._sent]


@contextmanager
def stub(seconds: float = 0.0, module: str = "hallulab.testing.endpoint") -> Iterator[str]:
    """Start a stub endpoint, whose answers take so long each, in a process of its own; yield its base URL."""
    command = [sys.executable, "-m", module, str(seconds)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        try:
            yield f"http://127.0.0.1:{int(process.stdout.readline())}/v1"
        finally:
            process.terminate()


async def measure_run(base_url: str, personas: int) -> tuple[float, RequestLog]:
    """Run a whole experiment; return its seconds and the requests that it sent."""
    values = {"base_url": base_url, "model": "stub", "limit": personas, "max_turns": 2}
    experiment = Experiment.model_validate({**values, "concurrency": CONCURRENCY})
    log = RequestLog()
    settings = RunSettings(quiet=True, transport=log)
    usual = gc.get_threshold()
    with tempfile.TemporaryDirectory() as directory:
        gc.set_threshold(*COLLECTED_AFTER)  # as the command does; a bare client has Python's own numbers
        started = time.perf_counter()
        await run_experiment(experiment, RunFolder(Path(directory)), settings, simulate=True)
        seconds = time.perf_counter() - started
    gc.set_threshold(*usual)
    return seconds, log


async def send_again(base_url: str, bodies: Sequence[Body]) -> float:
    """Return the seconds of a bare openai client for the same requests, each free of the others."""
    client = AsyncOpenAI(base_url=base_url, api_key="EMPTY", max_retries=0, timeout=600)
    gate = asyncio.Semaphore(CONCURRENCY)

    async def ask(body: Body) -> None:
        async with gate:
            await client.chat.completions.create(**body)

    gc.freeze()  # as the runner does: the run before left objects that a bare client would not have
    started = time.perf_counter()
    await asyncio.gather(*map(ask, bodies))
    seconds = time.perf_counter() - started
    gc.unfreeze()
    await client.close()
    return seconds


async def against_stub(personas: int) -> dict[str, Any]:
    """Measure the runner's calls a second, and their share of the bare client's.

    Args:
        personas: how many meet the five chatbots.
    """
    with stub() as base_url:
        await measure_run(base_url, 1)  # builds the knowledge base, imports everything
        seconds, log = await measure_run(base_url, personas)
        bodies = log.bodies()
        bare = await send_again(base_url, bodies)
    calls = len(bodies)
    print(f"stub: {calls} calls; runner {seconds:.2f} s, bare openai client {bare:.2f} s")
    return {
        "calls": calls,
        "calls_per_second": round(calls / seconds, 1),
        "ratio_to_bare_client": round(bare / seconds, 3),
    }


async def main() -> None:
    """Measure, and print the table."""
    parser = build_parser("orchestration", __doc__)
    parser.add_argument("--personas", type=int, default=PERSONAS, help="how many meet the five chatbots")
    options = parser.parse_args()
    print(json.dumps(await against_stub(options.personas)))


if __name__ == "__main__":
    asyncio.run(main())
