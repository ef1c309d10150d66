"""Measure large runs: `python -m benchmarks.scale [--made N]`.

A run of three turns and three detectors against an instant stub endpoint, once with few conversations and
once with ten times as many. Each run and each report is a process of its own, whose largest memory counts.

`--made N` measures `report` on a made run folder of N conversations instead; `--turns`, `--detectors` and
`--personas` are those of the folder.

The last line of the output is a JSON object.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from benchmarks.command import build_parser
from benchmarks.orchestration import stub
from benchmarks.scale.driver import DETECTORS
from benchmarks.scale.made_run import USUAL, Shape, make

FEW, MANY = 1_000, 10_000


def main() -> None:
    """Measure and print."""
    parser = build_parser("scale", __doc__)
    parser.add_argument("--made", type=int, default=0, help="conversations of a folder to report on")
    parser.add_argument("--turns", type=int, default=USUAL.turns, help="of each conversation")
    parser.add_argument("--detectors", type=int, default=USUAL.detectors, help="at most three")
    parser.add_argument("--personas", type=int, default=USUAL.personas)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as directory:
        if options.made:
            shape = Shape(options.turns, options.detectors, options.personas)
            found = measure_made(Path(directory) / "made", options.made, shape)
        else:
            found = compare_runs(Path(directory), FEW, MANY)
    print(json.dumps(found))


def compare_runs(directory: Path, few: int, many: int) -> dict[str, float]:
    """Return the memory of many conversations over that of few, and what is lost and doubled of the many."""
    with stub() as base_url:
        small = simulated(base_url, few, directory / "few")
        _show(f"{few} conversations", small)
        large = simulated(base_url, many, directory / "many")
        _show(f"{many} conversations", large)
    lost, doubled = lost_and_doubled(directory / "many", many)
    return {
        f"memory_ratio_{many}_over_{few}": round(large["run"].megabytes / small["run"].megabytes, 3),
        "report_seconds": large["report"].seconds,
        "lost": lost,
        "doubled": doubled,
    }


def measure_made(folder: Path, number: int, shape: Shape) -> dict[str, float]:
    """Return what `report` needs on a made folder of so many conversations."""
    make(number, folder, shape)
    report = needed_by("hallulab.__main__", "report", str(folder))
    _show(f"a folder of {number} conversations", {"report": report})
    return {
        "made": number,
        "made_report_megabytes": report.megabytes,
        "made_report_seconds": report.seconds,
        "made_report_cpu_seconds": report.cpu_seconds,
    }


def _show(about: str, needed: dict[str, Needed]) -> None:
    told = (
        f"{name} {one.megabytes} MB, {one.seconds} s ({one.cpu_seconds} s of CPU)"
        for name, one in needed.items()
    )
    print(f"{about}: {'; '.join(told)}", flush=True)


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


if __name__ == "__main__":
    main()
