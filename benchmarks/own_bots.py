"""What simulating an own bot costs beside a bare client: processor time a call, in one run.

`python -m benchmarks.orchestration` prints it. Each round holds the same conversations three times against
an instant stub: by a bare openai client (a user and a bot of three turns, nothing else), and by `run
--no-judge` with a bot of the kind `endpoint` and one of the kind `callable`, which asks the stub by the same
client. The order changes from round to round. Counted is the time of all processes but the stub's, also
what a run does once.
"""

from __future__ import annotations

import asyncio
import gc
import json
import os
import resource
import statistics
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import psutil
from openai import AsyncOpenAI

from benchmarks.command import build_parser
from hallulab.simulator.engine.models import RunSettings
from hallulab.simulator.engine.run import run_experiment
from hallulab.simulator.records.experiment import Experiment
from hallulab.simulator.records.folder import RunFolder
from hallulab.testing.tiny_pack import make_pack

CONVERSATIONS, TURNS, CONCURRENCY = 120, 3, 16
"""So many make the start of a run weigh no more than in a real one."""
ROUNDS = 5

SYSTEM = "You answer visitors of a tea house. " * 30
"""About as long as a bot's instructions with its passages."""

BOT = f"""
import os
from openai import AsyncOpenAI

CLIENT = AsyncOpenAI(base_url=os.environ["STUB_URL"], api_key="EMPTY", max_retries=0, timeout=600)
SYSTEM = {{"role": "system", "content": {SYSTEM!r}}}

async def reply(history):
    answer = await CLIENT.chat.completions.create(model="bot", messages=[SYSTEM, *history])
    return answer.choices[0].message.content
"""
"""An own bot in Python."""


def measure_cpu() -> float:
    """Return the processor seconds of this process and of those that it started and that have ended."""
    spent = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(one.ru_utime + one.ru_stime for one in spent)


def wait_for_children(but: int) -> None:
    """Wait until no process of a run is left, so that its time counts.

    Args:
        but: the stub's number.
    """
    gc.collect()
    while [one for one in psutil.Process().children() if one.pid != but]:
        time.sleep(0.05)


async def converse_bare(base_url: str) -> int:
    """Hold the conversations by a bare client; return the calls."""
    client = AsyncOpenAI(base_url=base_url, api_key="EMPTY", max_retries=0, timeout=600)
    places = asyncio.Semaphore(CONCURRENCY)

    async def ask(system: str, said: list[Any]) -> str:
        messages: list[Any] = [{"role": "system", "content": system}, *said]
        answer = await client.chat.completions.create(model="bot", messages=messages)
        return answer.choices[0].message.content or ""

    async def converse() -> None:
        said: list[Any] = []
        async with places:
            for _ in range(TURNS):
                said.append({"role": "user", "content": await ask(SYSTEM, said)})
                said.append({"role": "assistant", "content": await ask(SYSTEM, said)})

    await asyncio.gather(*(converse() for _ in range(CONVERSATIONS)))
    await client.close()
    return CONVERSATIONS * TURNS * 2


async def converse_with(kind: str, options: dict[str, Any], base_url: str, pack: Path) -> int:
    """Simulate the conversations with an own bot; return the calls, also those of the bot."""
    experiment = Experiment.model_validate(
        {
            "scenario": str(pack),
            "base_url": base_url,
            "model": "stub",
            "chatbots": [{"name": "mine", "kind": kind, "options": options}],
            "detectors": ["lexical"],
            "repeats": CONVERSATIONS,
            "min_turns": TURNS,
            "max_turns": TURNS,
            "concurrency": CONCURRENCY,
        }
    )
    with tempfile.TemporaryDirectory() as directory:
        folder = RunFolder(Path(directory))
        await run_experiment(experiment, folder, RunSettings(quiet=True), simulate=True, judge=False)
        held = list(folder.read_conversations())
    if any(one.error for one in held):
        raise RuntimeError(next(one.error for one in held if one.error))
    own = sum(len(one.turns) for one in held) if kind == "callable" else 0
    return own + sum(len(one.calls) + sum(len(turn.calls) for turn in one.turns) for one in held)


@contextmanager
def at_home(base_url: str) -> Iterator[Path]:
    """Yield a pack, in a working directory that has the bot."""
    before = Path.cwd()
    with tempfile.TemporaryDirectory() as directory:
        os.chdir(directory)
        os.environ["STUB_URL"] = base_url
        Path("benchmark_bot.py").write_text(BOT, encoding="utf-8")
        try:
            yield make_pack(Path(directory) / "pack")
        finally:
            os.chdir(before)


async def against_bare_client(base_url: str, stub: int, rounds: int = ROUNDS) -> dict[str, Any]:
    """Measure, and return the medians of the rounds.

    Args:
        base_url: the stub's.
        stub: the number of its process.
        rounds: how often all are measured.
    """
    with at_home(base_url) as pack:
        served = {"base_url": base_url, "model": "bot", "system": SYSTEM}
        works: dict[str, Callable[[], Awaitable[int]]] = {
            "bare": lambda: converse_bare(base_url),
            "endpoint": lambda: converse_with("endpoint", served, base_url, pack),
            "callable": lambda: converse_with("callable", {"target": "benchmark_bot:reply"}, base_url, pack),
        }
        for work in works.values():
            await work()  # imports everything
        found: dict[str, list[float]] = {name: [] for name in works}
        for number in range(rounds):
            names = list(works)
            for name in names[number % 3 :] + names[: number % 3]:
                wait_for_children(stub)
                before = measure_cpu()
                calls = await works[name]()
                wait_for_children(stub)
                found[name].append((measure_cpu() - before) / calls * 1000)
    result: dict[str, Any] = {"bare_cpu_ms_a_call": round(statistics.median(found["bare"]), 2)}
    for name in ("endpoint", "callable"):
        ratios = [own / bare for own, bare in zip(found[name], found["bare"], strict=True)]
        result[f"{name}_cpu_ms_a_call"] = round(statistics.median(found[name]), 2)
        result[f"{name}_over_bare"] = round(statistics.median(ratios), 2)
    result["embedding_model_loaded"] = "torch" in sys.modules
    return result


async def main() -> None:
    """Measure these alone, and print the numbers."""
    from benchmarks.orchestration import run_stub

    parser = build_parser("own_bots", __doc__)
    parser.add_argument("--rounds", type=int, default=ROUNDS, help="how often all are measured")
    options = parser.parse_args()
    with run_stub() as (base_url, process):
        print(json.dumps(await against_bare_client(base_url, process, options.rounds)))


if __name__ == "__main__":
    asyncio.run(main())
