"""What the runner costs: `python -m benchmarks.orchestration [--live]`.

Against an instant stub endpoint in another process, it counts the model calls a second that a whole
experiment makes (five chatbots, two detectors), and divides by what a bare loop of the openai client
makes in the same process and run. With `--live` it serves smollm2-135m on vLLM, without prefix cache,
and measures a smaller experiment at concurrency 16 and 1, and its requests sent again as fast as the
client can.

The last line of the output is a JSON object.
"""

from __future__ import annotations

import argparse
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

from agents.wire import Wire
from scenarios.steps import silent
from simulator.config import Experiment
from simulator.laboratory import Settings, execute_experiment
from simulator.run_folder import RunFolder

CONCURRENCY = 16

PERSONAS = 24
"""In five conversations each: enough that what a run does once weighs no more than in a real one."""


LIVE: dict[str, Any] = {"chatbots": ["vanilla", "prompt-engineered"], "detectors": ["lexical"]}
"""What the live measurement runs: all five chatbots and both detectors take a quarter of an hour a pass."""
LIVE_PERSONAS = 8


class RequestLog:
    """Keeps every request body that really leaves the process."""

    def __init__(self) -> None:
        self._bodies: list[bytes] = []
        self._send = Wire._send

    @property
    def bodies(self) -> list[dict[str, Any]]:
        """The bodies so far; read only now, as reading them is none of the runner's work."""
        return [json.loads(body) for body in self._bodies]

    def __enter__(self) -> RequestLog:
        log = self

        async def send(wire: Wire, request: httpx2.Request) -> httpx2.Response:
            if request.method == "POST":
                log._bodies.append(request.content)
            return await log._send(wire, request)

        Wire._send = send  # type: ignore[method-assign]
        return self

    def __exit__(self, *_: object) -> None:
        Wire._send = self._send  # type: ignore[method-assign]


@contextmanager
def stub() -> Iterator[str]:
    """The stub endpoint's base URL."""
    process = subprocess.Popen(
        [sys.executable, "-m", "benchmarks.stub_endpoint"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None
    try:
        yield f"http://127.0.0.1:{int(process.stdout.readline())}/v1"
    finally:
        process.terminate()
        process.wait()


async def run_experiment(
    base_url: str, model: str, limit: int, concurrency: int, **fields: Any
) -> tuple[float, list[dict[str, Any]]]:
    """Seconds of a whole experiment, and the requests it sent."""
    values = {"base_url": base_url, "model": model, "limit": limit, "max_turns": 2, **fields}
    experiment = Experiment.model_validate({**values, "concurrency": concurrency})
    with tempfile.TemporaryDirectory() as directory, RequestLog() as log:
        started = time.perf_counter()
        await execute_experiment(experiment, RunFolder(Path(directory)), Settings(quiet=True), simulate=True)
        seconds = time.perf_counter() - started
        return seconds, log.bodies


async def send_again(base_url: str, bodies: Sequence[dict[str, Any]], concurrency: int) -> float:
    """Seconds that a bare openai client needs for the same requests."""
    client = AsyncOpenAI(base_url=base_url, api_key="EMPTY", max_retries=0, timeout=600)
    gate = asyncio.Semaphore(concurrency)

    async def ask(body: dict[str, Any]) -> None:
        async with gate:
            await client.chat.completions.create(**body)

    gc.freeze()  # as the runner does: the run before left objects that a bare client would not have
    started = time.perf_counter()
    await asyncio.gather(*(ask(body) for body in bodies))
    seconds = time.perf_counter() - started
    gc.unfreeze()
    await client.close()
    return seconds


async def against_stub() -> dict[str, float]:
    """Calls a second through the runner, and as a share of the bare client's."""
    with stub() as base_url:
        await run_experiment(
            base_url, "stub", 1, CONCURRENCY
        )  # builds the knowledge base, imports everything
        seconds, bodies = await run_experiment(base_url, "stub", PERSONAS, CONCURRENCY)
        bare = await send_again(base_url, bodies, CONCURRENCY)
    print(f"stub: {len(bodies)} calls; runner {seconds:.2f} s, bare openai client {bare:.2f} s")
    return {
        "calls": len(bodies),
        "calls_per_second": round(len(bodies) / seconds, 1),
        "ratio_to_bare_client": round(bare / seconds, 3),
    }


async def against_vllm(model: str) -> dict[str, float]:
    """Speed-up of concurrency 16 over 1, and the run's time against the bare requests' time."""
    from simulator.serving.server import serve

    async with serve(model, extra_flags=("--no-enable-prefix-caching",), on_progress=silent) as served:
        await run_experiment(served.base_url, model, 1, CONCURRENCY, **LIVE)
        many, bodies = await run_experiment(served.base_url, model, LIVE_PERSONAS, CONCURRENCY, **LIVE)
        again = await send_again(served.base_url, bodies, CONCURRENCY)
        one, _ = await run_experiment(served.base_url, model, LIVE_PERSONAS, 1, **LIVE)
    print(
        f"{model}: {len(bodies)} calls; 16 at once {many:.1f} s, one by one {one:.1f} s, bare {again:.1f} s"
    )
    return {
        "speedup_16_over_1": round(one / many, 2),
        "ratio_to_replayed_requests": round(many / again, 3),
    }


async def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--live", action="store_true", help="also measure against a real vLLM")
    parser.add_argument("--model", default="smollm2-135m", help="the model of --live")
    options = parser.parse_args()
    result = await against_stub()
    if options.live:
        result.update(await against_vllm(options.model))
    print(json.dumps(result))


if __name__ == "__main__":
    asyncio.run(main())
