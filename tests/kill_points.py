"""Kill a run at many points, resume it, and compare its journals with an undisturbed run's.

A run is a process that is ended by SIGKILL, as `kill -9` does: nothing of Python's runs after it, and the
files hold what the system got by then. It is forked from a process that has done the same run before. So it
differs from a new process only in that imports, which take two seconds and write nothing, are never killed.

Of random kills, half come at a random time. The others come at a random line of the journals, after a random
number of its bytes: a line is one `write`, so this is a kill in the middle of it. Chosen kills come at a line
of a journal, or while the reports are written (`Place`).
"""

from __future__ import annotations

import json
import os
import random
import shutil
import signal
import time
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import astuple, dataclass
from functools import partial
from pathlib import Path
from typing import Any
from unittest.mock import patch

from scenarios.files.jsonl import LineWriter, read_lines
from tests import forked_runs

Lines = Counter[str]

Place = tuple[str, int, float]
"""Name of a journal, number of a line of it from 0, and the share of its bytes that is written before the
kill. Or `report`, the number of its files that are in their place before the kill, and 0."""


@dataclass(frozen=True)
class Undisturbed:
    """A run that nobody killed."""

    lines: dict[str, Lines]
    """Lines of each journal in canonical form (`journal_lines`)."""
    seconds: float
    """How long it took."""


@dataclass(frozen=True)
class Found:
    """How resumed runs differ from an undisturbed one."""

    points: int = 0
    """Kills."""
    unfinished: int = 0
    """Runs that the kill found unfinished; the other ones were through."""
    torn: int = 0
    """Kills that left an unfinished line."""
    lost: int = 0
    """Lines that a resumed run lacks."""
    doubled: int = 0
    """Lines that it has too often, or that the undisturbed run has not."""

    def __add__(self, other: Found) -> Found:
        return Found(*(one + more for one, more in zip(astuple(self), astuple(other), strict=True)))


def kill_at(command: Sequence[str], folder: Path, places: Sequence[Place]) -> Found:
    """Kill a run at each of these places, resume it to its end, and compare the journals."""
    with forked_runs.driver() as driver:
        return driver.submit(
            _kill_and_resume, command, folder, [partial(_kill_at, place) for place in places]
        ).result()


def kill_and_resume(command: Sequence[str], folder: Path, points: int, processes: int = 1) -> Found:
    """Kill a run at so many random points, resume each to its end, and compare the journals.

    Args:
        command: arguments of `hallulab`, without `--out`.
        folder: where the runs are held; it is made.
        points: kills, each in a folder of its own.
        processes: how many kill at the same time. Each starts anew, so that it holds no thread of ours.
    """
    with forked_runs.driver(processes) as pool:
        parts = [
            pool.submit(
                _kill_and_resume,
                command,
                folder / str(one),
                [partial(_kill, seed) for seed in range(one, points, processes)],
            )
            for one in range(processes)
        ]
        return sum((part.result() for part in parts), Found())


Kill = Callable[[Sequence[str], Path, Undisturbed], None]
"""Starts a run, given the command, its folder and the undisturbed run, and kills it."""


def _kill_and_resume(command: Sequence[str], folder: Path, kills: Sequence[Kill]) -> Found:
    folder.mkdir(parents=True)
    whole = _undisturbed(command, folder / "whole")
    found = Found()
    for number, kill in enumerate(kills):
        run = folder / str(number)
        kill(command, run, whole)
        unfinished = not (run / "report.html").exists()
        torn = any(_is_torn(path) for path in run.glob("*.jsonl"))
        _finish(command, run)
        left = journal_lines(run)
        pairs = [(lines, left.get(name, Lines())) for name, lines in whole.lines.items()]
        lost = sum((lines - others).total() for lines, others in pairs)
        doubled = sum((others - lines).total() for lines, others in pairs)
        found += Found(1, unfinished, torn, lost, doubled)
        if not lost and not doubled:
            shutil.rmtree(run)
    return found


def _undisturbed(command: Sequence[str], folder: Path) -> Undisturbed:
    """Run a command to its end, twice; return what it wrote, and the seconds of the second time."""
    forked_runs.run_here(command, folder)
    shutil.rmtree(folder)
    started = time.perf_counter()
    _finish(command, folder)
    return Undisturbed(journal_lines(folder), time.perf_counter() - started)


def _finish(command: Sequence[str], folder: Path) -> None:
    """Run a command into a folder, to its end.

    Raises:
        RuntimeError: it fails.
    """
    ended = forked_runs.run(command, folder)
    if ended.code != 0:
        raise RuntimeError(f"a run ended with code {ended.code}: {ended.err}")


def _kill_at(place: Place, command: Sequence[str], folder: Path, whole: Undisturbed) -> None:
    name, number, share = place
    before = (
        partial(_end_in_report, number) if name == "report" else partial(end_in_line, number, share, name)
    )
    process = forked_runs.start(command, folder, before)
    process.join()
    if process.exitcode != -signal.SIGKILL:
        raise RuntimeError(f"a run has no place {place}: it ended with code {process.exitcode}")


def _kill(seed: int, command: Sequence[str], folder: Path, whole: Undisturbed) -> None:
    """Start a run in a process, and end the process by SIGKILL at a point that the seed gives."""
    chance = random.Random(seed)
    if chance.random() < 0.5:
        process = forked_runs.start(command, folder)
        process.join(chance.uniform(0.05, 1.0) * whole.seconds)
        process.kill()
    else:
        line = chance.randrange(sum(lines.total() for lines in whole.lines.values()))
        process = forked_runs.start(command, folder, partial(end_in_line, line, chance.random()))
    process.join()


def end_in_line(line: int, share: float, journal: str | None = None) -> None:
    """Have this process write that share of the line of this number, and end by SIGKILL then.

    Args:
        line: number of the line, from 0.
        share: of its bytes.
        journal: name of the file whose lines count; None: those of all journals.
    """
    written = 0

    def write(self: LineWriter, data: bytes) -> None:
        nonlocal written
        counts = journal is None or self.path.name == journal
        if counts and written == line:
            os.write(self._descriptor, data[: int(share * (len(data) + 1))])
            os.kill(os.getpid(), signal.SIGKILL)
        written += counts
        os.write(self._descriptor, data)

    patch.object(LineWriter, "_write", write).start()


def _end_in_report(number: int) -> None:
    """Have this process end by SIGKILL when so many of the report's files are in their place, from 0."""
    replace, placed = Path.replace, 0

    def place(self: Path, target: Path) -> Path:
        nonlocal placed
        if Path(target).name.startswith("report."):
            if placed == number:
                os.kill(os.getpid(), signal.SIGKILL)
            placed += 1
        return replace(self, target)

    patch.object(Path, "replace", place).start()


def journal_lines(folder: Path) -> dict[str, Lines]:
    """Return the lines of a run's journals by file name, in a form that is equal for equal runs.

    Concurrent calls and conversations end in any order. So calls are sorted, and of the audit log the numbers
    and hashes that depend on the order are left out; hallulab itself checks its chain.
    """
    return {
        path.name: Lines(
            json.dumps(_without_order(value, path.name), sort_keys=True) for _, value in read_lines(path)
        )
        for path in folder.glob("*.jsonl")
    }


def _is_torn(path: Path) -> bool:
    return path.read_bytes()[-1:] not in (b"", b"\n")


def _without_order(value: Any, name: str) -> Any:
    if isinstance(value, list):
        return [_without_order(item, name) for item in value]
    if not isinstance(value, dict):
        return value
    return {
        key: sorted(item, key=json.dumps) if key == "calls" else _without_order(item, name)
        for key, item in value.items()
        if name != "audit.jsonl" or key not in ("sequence", "previous", "hash")
    }
