"""Measure the cost of the runner: `python -m benchmarks.orchestration [--live]`.

A whole experiment (five chatbots, two detectors) runs against an instant stub endpoint in another process.
Its model calls a second are divided by those of a bare loop of the openai client in the same process and run.

`--live` serves smollm2-135m on vLLM and measures a smaller experiment at concurrency 16 and 1. A bare client
then sends the same requests as fast as their dependencies allow: those of a conversation in order, all
conversations at once. vLLM's prefix cache is on, but no measurement finds there what another one left.

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
from hallulab.agents.machine.cache import silent
from hallulab.agents.models.transport import make_network
from hallulab.simulator.cli.main import COLLECTED_AFTER
from hallulab.simulator.engine.models import RunSettings
from hallulab.simulator.engine.run import run_experiment
from hallulab.simulator.records.experiment import Experiment
from hallulab.simulator.records.folder import RunFolder

CONCURRENCY = 16

PERSONAS = 24
"""Each has five conversations. So many make the start of a run weigh no more than in a real one."""


LIVE: dict[str, Any] = {
    "chatbots": ["prompt-engineered"],
    "detectors": ["lexical"],
    "min_turns": 1,
    "max_turns": 1,
    "reply_tokens": 64,
}
"""The live experiment. In a conversation, each request follows from the one before. All five chatbots with
both detectors would take a quarter of an hour a pass."""

Body = dict[str, Any]


class RequestLog(httpx2.AsyncBaseTransport):
    """Send requests, and keep the body of each.

    Args:
        salt: vLLM shares cached prefixes only among requests of the same salt; None: they carry none, and
            answers are not kept.
    """

    def __init__(self, salt: str | None) -> None:
        self._exchanges: list[tuple[bytes, bytes]] = []
        self._salt = salt
        self._network = make_network()

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        """Send a request; see `httpx2.AsyncBaseTransport`."""
        if request.method != "POST":
            return await self._network.handle_async_request(request)
        if self._salt is None:
            self._exchanges.append((request.content, b""))
            return await self._network.handle_async_request(request)
        response = await self._network.handle_async_request(salted(request, self._salt))
        answer = await response.aread()
        self._exchanges.append((request.content, answer))
        return httpx2.Response(response.status_code, content=answer)

    async def aclose(self) -> None:
        """Close the connections."""
        await self._network.aclose()

    def bodies(self) -> list[Body]:
        """Return the bodies. They are parsed only here, because that is none of the runner's work."""
        return [json.loads(body) for body, _ in self._exchanges]

    def chains(self) -> list[list[Body]]:
        """Return the bodies by conversation: a request goes on in the one whose last answer it repeats."""
        chains: list[list[Body]] = []
        said: list[str] = []
        for body, (_, answer) in zip(self.bodies(), self._exchanges, strict=True):
            prompt = "\n".join(message["content"] for message in body["messages"])
            goes_on = next((at for at, words in enumerate(said) if words in prompt), None)
            words = json.loads(answer)["choices"][0]["message"]["content"].strip()
            if goes_on is None:
                chains.append([body])
                said.append(words)
            else:
                chains[goes_on].append(body)
                said[goes_on] = words
        return chains


def salted(request: httpx2.Request, salt: str) -> httpx2.Request:
    """Add a salt for vLLM's prefix cache to a request."""
    content = json.dumps({**json.loads(request.content), "cache_salt": salt}).encode()
    headers = {name: value for name, value in request.headers.items() if name != "content-length"}
    return httpx2.Request(
        request.method, request.url, headers=headers, content=content, extensions=request.extensions
    )


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


async def measure_run(
    base_url: str, model: str, limit: int, concurrency: int, salt: str | None = None, **fields: Any
) -> tuple[float, RequestLog]:
    """Run a whole experiment; return its seconds and the requests that it sent."""
    values = {"base_url": base_url, "model": model, "limit": limit, "max_turns": 2, **fields}
    experiment = Experiment.model_validate({**values, "concurrency": concurrency})
    log = RequestLog(salt)
    settings = RunSettings(quiet=True, transport=log)
    usual = gc.get_threshold()
    with tempfile.TemporaryDirectory() as directory:
        gc.set_threshold(*COLLECTED_AFTER)  # as the command does; a bare client has Python's own numbers
        started = time.perf_counter()
        await run_experiment(experiment, RunFolder(Path(directory)), settings, simulate=True)
        seconds = time.perf_counter() - started
    gc.set_threshold(*usual)
    return seconds, log


async def send_again(
    base_url: str, chains: Sequence[Sequence[Body]], concurrency: int, extra: Body | None = None
) -> float:
    """Return the seconds of a bare openai client for the same requests, each chain's one after the other."""
    client = AsyncOpenAI(base_url=base_url, api_key="EMPTY", max_retries=0, timeout=600)
    gate = asyncio.Semaphore(concurrency)

    async def ask(chain: Sequence[Body]) -> None:
        for body in chain:
            async with gate:
                await client.chat.completions.create(**body, extra_body=extra)

    gc.freeze()  # as the runner does: the run before left objects that a bare client would not have
    started = time.perf_counter()
    await asyncio.gather(*(ask(chain) for chain in chains))
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
        await measure_run(base_url, "stub", 1, CONCURRENCY)  # builds the knowledge base, imports everything
        seconds, log = await measure_run(base_url, "stub", personas, CONCURRENCY)
        # Detectors ask many things at once, so the bare loop gets every request free of the others.
        single = [[body] for body in log.bodies()]
        bare = await send_again(base_url, single, CONCURRENCY)
    calls = len(single)
    print(f"stub: {calls} calls; runner {seconds:.2f} s, bare openai client {bare:.2f} s")
    return {
        "calls": calls,
        "calls_per_second": round(calls / seconds, 1),
        "ratio_to_bare_client": round(bare / seconds, 3),
    }


async def against_vllm(model: str) -> dict[str, float]:
    """Measure the speed-up of concurrency 16 over 1, and the run's time over the bare requests' time."""
    from hallulab.agents.serving.server import serve

    async with serve(model, on_progress=silent) as served:

        async def run(limit: int, concurrency: int, salt: str) -> tuple[float, RequestLog]:
            return await measure_run(served.base_url, model, limit, concurrency, salt, **LIVE)

        await run(1, CONCURRENCY, "warm-up")
        many, log = await run(CONCURRENCY, CONCURRENCY, "many")
        chains = log.chains()
        again = await send_again(served.base_url, chains, CONCURRENCY, {"cache_salt": "again"})
        one, _ = await run(CONCURRENCY, 1, "one")
    calls = sum(map(len, chains))
    print(f"{model}: {calls} calls; 16 at once {many:.1f} s, one by one {one:.1f} s, bare {again:.1f} s")
    return {
        "speedup_16_over_1": round(one / many, 2),
        "ratio_to_replayed_requests": round(many / again, 3),
    }


async def main() -> None:
    """Measure, and print the table."""
    parser = build_parser("orchestration", __doc__)
    parser.add_argument("--live", action="store_true", help="also measure against a real vLLM")
    parser.add_argument("--model", default="smollm2-135m", help="the model of --live")
    parser.add_argument("--personas", type=int, default=PERSONAS, help="how many meet the five chatbots")
    options = parser.parse_args()
    result = await against_stub(options.personas)
    if options.live:
        result.update(await against_vllm(options.model))
    print(json.dumps(result))


if __name__ == "__main__":
    asyncio.run(main())
