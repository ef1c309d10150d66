"""Kill a run at many points, resume it, and compare its journals with an undisturbed run's.

A run is a process that is ended by SIGKILL, as `kill -9` does: nothing of Python's runs after it, and the
files hold what the system got by then. It is forked from a process that has done the same run before. So it
differs from a new process only in that imports, which take two seconds and write nothing, are never killed.

Half of the kills come at a random time. The others come at a random line of the journals, after a random
number of its bytes: a line is one `write`, so this is a kill in the middle of it. A test may also choose the
places (`Place`).
"""

from __future__ import annotations

import json
import os
import random
import shutil
import signal
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import astuple, dataclass
from pathlib import Path
from typing import Any
from unittest.mock import patch

from hallulab.scenarios.files.atomic import _write_new
from hallulab.scenarios.files.json_text import LineWriter, read_lines
from tests.kit import forked_runs

Lines = Counter[str]


@dataclass(frozen=True)
class Undisturbed:
    """A run that nobody killed."""

    lines: dict[str, Lines]
    """Lines of each journal in canonical form (`journal_lines`)."""
    seconds: float


@dataclass(frozen=True)
class InLine:
    """A place in a journal: in a line, after that share of its bytes."""

    line: int
    share: float
    journal: str | None = None
    """The file's name; None: the lines of all journals count, as they are written. Journals of turns do
    not count then, because they are removed."""

    def end_there(self) -> None:
        """Have this process end by SIGKILL when it comes there."""
        written = 0

        def write(writer: LineWriter, data: bytes) -> None:
            nonlocal written
            name = writer.path.name
            counts = name == self.journal or (self.journal is None and name != "turns.jsonl")
            if counts and written == self.line:
                os.write(writer._descriptor, data[: int(self.share * (len(data) + 1))])
                os.kill(os.getpid(), signal.SIGKILL)
            written += counts
            os.write(writer._descriptor, data)

        patch.object(LineWriter, "_write", write).start()


@dataclass(frozen=True)
class InReport:
    """A place in the writing of a report: its text is that far beside the place where it belongs."""

    report: str
    share: float

    def end_there(self) -> None:
        """Have this process end by SIGKILL when it comes there."""

        def write_new(path: Path, data: bytes) -> None:
            if not path.name.startswith(f".{self.report}."):
                return _write_new(path, data)
            _write_new(path, data[: int(self.share * len(data))])
            os.kill(os.getpid(), signal.SIGKILL)
            raise AssertionError

        patch("hallulab.scenarios.files.atomic._write_new", write_new).start()


@dataclass(frozen=True)
class AfterReport:
    """The place where a report has just come to where it belongs."""

    report: str

    def end_there(self) -> None:
        """Have this process end by SIGKILL when it comes there."""
        replace = Path.replace

        def replace_and_end(self_: Path, target: Path) -> Path:
            made = replace(self_, target)
            if made.name == self.report:
                os.kill(os.getpid(), signal.SIGKILL)
            return made

        patch.object(Path, "replace", replace_and_end).start()


Place = InLine | InReport | AfterReport


@dataclass(frozen=True)
class Found:
    """How resumed runs differ from an undisturbed one."""

    points: int = 0
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


def kill_and_resume(command: Sequence[str], folder: Path, points: int, processes: int = 1) -> Found:
    """Kill a run at so many points, resume each to its end, and compare the journals.

    Args:
        command: arguments of `hallulab`, without `--out`.
        folder: parent of the run folders; created here.
        points: kills, each in a folder of its own.
        processes: how many kill at the same time. Each is a new process without threads of ours.
    """
    with forked_runs.driver(processes) as pool:
        parts = [
            pool.submit(_kill_and_resume, command, folder / str(one), range(one, points, processes))
            for one in range(processes)
        ]
        return sum((part.result() for part in parts), Found())


def _kill_and_resume(command: Sequence[str], folder: Path, seeds: Sequence[int]) -> Found:
    folder.mkdir(parents=True)
    whole = _undisturbed(command, folder / "whole")
    found = Found()
    for seed in seeds:
        run = folder / str(seed)
        _kill(command, run, whole, random.Random(seed))
        unfinished = not (run / "report.html").exists()
        torn = any(is_torn(path) for path in run.glob("*.jsonl"))
        _finish(command, run)
        lost, doubled = count_differences(run, whole.lines)
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


def _kill(command: Sequence[str], folder: Path, whole: Undisturbed, chance: random.Random) -> None:
    """Start a run in a process, and end the process by SIGKILL at a point that `chance` gives."""
    if chance.random() < 0.5:
        process = forked_runs.start(command, folder)
        process.join(chance.uniform(0.05, 1.0) * whole.seconds)
        process.kill()
    else:
        line = chance.randrange(sum(lines.total() for lines in whole.lines.values()))
        process = forked_runs.start(command, folder, InLine(line, chance.random()).end_there)
    process.join()


def journal_lines(folder: Path) -> dict[str, Lines]:
    """Return the lines of a run's journals by file name, in a form that is equal for equal runs.

    Concurrent calls and conversations end in any order. So calls are sorted, and of the audit log the numbers
    and hashes that depend on the order are left out; hallulab itself checks its chain.
    """
    return {path.name: lines_of(path) for path in folder.glob("*.jsonl")}


def lines_of(path: Path) -> Lines:
    """Return the lines of one journal, likewise."""
    return Lines(
        json.dumps(_without_order(value, path.name), sort_keys=True) for _, value in read_lines(path)
    )


def count_differences(folder: Path, whole: dict[str, Lines]) -> tuple[int, int]:
    """Return how many lines a run's journals lack, and how many they have too often.

    Args:
        folder: the run.
        whole: the journals of an undisturbed run.
    """
    left = journal_lines(folder)
    pairs = [(lines, left.get(name, Lines())) for name, lines in whole.items()]
    lost = sum((lines - others).total() for lines, others in pairs)
    return lost, sum((others - lines).total() for lines, others in pairs)


def is_torn(path: Path) -> bool:
    """Return whether a file's last line is unfinished."""
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
