"""Memory and time of large runs, and whether anything is lost or doubled."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from benchmarks.scale.driver import DETECTORS


@dataclass(frozen=True)
class Needed:
    """What a command needed."""

    megabytes: int
    """Largest memory of its process."""
    seconds: float
    """Wall time."""
    cpu_seconds: float
    """Time of its processor, which other processes hardly change."""


_WATCH = """
import os, subprocess, sys
process = subprocess.Popen(sys.argv[1:], stdout=subprocess.DEVNULL)
_, status, usage = os.wait4(process.pid, 0)
print(usage.ru_maxrss, usage.ru_utime + usage.ru_stime)
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
