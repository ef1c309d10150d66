"""Memory, time and speed-up of large runs, and whether anything is lost or doubled.

How much faster two worker processes are than one: `python -m benchmarks.scale.cost URL N USERS DIR`.
So many users meet the five chatbots, two turns each, and the default detectors judge, by N workers. Its
seconds are those of the whole process, to which its imports and the start of its workers belong.
"""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks.orchestration import stub
from benchmarks.scale.driver import DETECTORS, embed_without_model
from hallulab.simulator.engine.models import RunSettings
from hallulab.simulator.engine.run import run_experiment
from hallulab.simulator.records.experiment import Experiment
from hallulab.simulator.records.folder import RunFolder


@dataclass(frozen=True)
class Needed:
    """What a command needed."""

    megabytes: int
    """Largest memory of its process and those that it started, added up."""
    seconds: float
    """Wall time."""
    cpu_seconds: float
    """Time of the processor for all of them, which other processes hardly change."""


_WATCH = """
import os, subprocess, sys, time
import psutil

def measure(root):
    total = 0
    for one in (root, *root.children(recursive=True)):
        try:
            total += one.memory_info().rss
        except psutil.Error:
            pass
    return total // 1024

process = subprocess.Popen(sys.argv[1:], stdout=subprocess.DEVNULL)
root, most = psutil.Process(process.pid), 0
while True:
    pid, status, usage = os.wait4(process.pid, os.WNOHANG)
    if pid:
        break
    try:
        most = max(most, measure(root))
    except psutil.Error:
        pass
    time.sleep(0.1)
print(max(most, usage.ru_maxrss), usage.ru_utime + usage.ru_stime)
sys.exit(os.waitstatus_to_exitcode(status) != 0)
"""


def needed_by(module: str, *arguments: str) -> Needed:
    """Run a module in a process of its own.

    Linux counts the memory of the process that starts another one as the other's, so a small one starts it.

    Raises:
        RuntimeError: it failed.
    """
    started = time.perf_counter()
    command = [sys.executable, "-m", module, *arguments]
    watched = subprocess.run(
        [sys.executable, "-c", _WATCH, *command], stdout=subprocess.PIPE, text=True, check=False
    )
    if watched.returncode:
        raise RuntimeError(f"{' '.join(command)} failed")
    kilobytes, cpu = watched.stdout.split()
    return Needed(int(kilobytes) // 1024, round(time.perf_counter() - started, 1), round(float(cpu), 1))


def simulated(base_url: str, users: int, folder: Path) -> dict[str, Needed]:
    """Simulate and judge so many conversations, then report; return what each needed."""
    return {
        "run": needed_by("benchmarks.scale.driver", base_url, str(users), str(folder)),
        "report": needed_by("hallulab.__main__", "report", str(folder)),
    }


def lost_and_doubled(folder: Path, users: int, detectors: Sequence[str] = DETECTORS) -> tuple[int, int]:
    """Count the conversations and verdicts that journals lack, and those that they hold twice.

    The journals are read by nothing of hallulab: a conversation for each user, and a verdict of each detector
    on each of its turns.
    """
    turns: dict[str, int] = {}
    held: Counter[tuple[str, int]] = Counter()
    with (folder / "conversations.jsonl").open(encoding="utf-8") as file:
        for line in file:
            one = json.loads(line)
            turns[one["id"]] = len(one["turns"])
            held[one["persona"], one["seed"]] += 1
    wanted = {
        (id, turn, detector)
        for id, number in turns.items()
        for turn in range(number)
        for detector in detectors
    }
    judged: Counter[tuple[str, int, str]] = Counter()
    with (folder / "verdicts.jsonl").open(encoding="utf-8") as file:
        for line in file:
            one = json.loads(line)
            judged[one["conversation"], one["turn"], one["detector"]] += 1
    lost = max(0, users - len(held)) + len(wanted - judged.keys()) + len(judged.keys() - wanted)
    doubled = sum(number - 1 for counts in (held, judged) for number in counts.values())
    return lost, doubled


ANSWER_S = 0.2
"""How long each answer of the stub endpoint takes."""


def speedup(directory: Path, users: int) -> dict[str, float]:
    """Return how much faster two workers are than one, and two actors of Ray than two workers.

    Each has `Experiment.concurrency`.
    """
    with stub(ANSWER_S) as base_url:

        def time_workers(number: int, kind: str) -> float:
            folder = str(directory / f"{kind}{number}")
            return needed_by("benchmarks.scale.cost", base_url, str(number), str(users), folder, kind).seconds

        one, two, actors = time_workers(1, "process"), time_workers(2, "process"), time_workers(2, "ray")
    print(f"{users} users: one worker {one:.1f} s, two {two:.1f} s, two of Ray {actors:.1f} s", flush=True)
    return {"speedup_2_workers": round(one / two, 2), "ray_to_workers": round(two / actors, 2)}


def main() -> None:
    """Run it."""
    base_url, workers, users, folder, kind = sys.argv[1:]
    values: dict[str, Any] = {"base_url": base_url, "model": "stub", "count": int(users), "max_turns": 2}
    settings = RunSettings(
        quiet=True,
        workers=int(workers),
        ray="local" if kind == "ray" else None,
        prepare_worker=embed_without_model,
    )
    embed_without_model()
    wanted = Experiment.model_validate(values)
    asyncio.run(run_experiment(wanted, RunFolder(Path(folder)), settings, simulate=True))


if __name__ == "__main__":
    main()
