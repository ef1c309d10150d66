"""Runs of `hallulab` in processes of their own, forked from one that has done such a run before.

A new process would import for two seconds and more before anything happens. `driver` gives a process to fork
from that holds no thread of ours.
"""

from __future__ import annotations

import contextlib
import math
import multiprocessing
import sys
from collections.abc import Callable, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from multiprocessing.context import ForkProcess
from pathlib import Path

from hallulab.agents import progress
from hallulab.testing.tiny_pack import words_for_vectors


@dataclass(frozen=True)
class Ended:
    """The end of a command, as a shell sees it."""

    code: int
    out: str
    err: str

    @property
    def last_line(self) -> str:
        """The last line on standard error; each one before warns, or says which step begins."""
        *before, last = self.err.splitlines() or [""]
        assert all(line.startswith("warning: ") or line.endswith(" …") for line in before), self
        return last


FORKING = multiprocessing.get_context("fork")
"""Starts processes that have what this one has."""
_SPAWNING = multiprocessing.get_context("spawn")


def driver(processes: int = 1) -> ProcessPoolExecutor:
    """Return new processes to run functions in that fork."""
    return ProcessPoolExecutor(processes, mp_context=_SPAWNING, initializer=_print_no_times)


def _print_no_times() -> None:
    """What a command prints does not depend on how busy the machine is."""
    progress.FIRST_LINE_AFTER = progress.LINE_EVERY = math.inf


def start(command: Sequence[str], folder: Path, before: Callable[[], object] = lambda: None) -> ForkProcess:
    """Fork a process that runs a command into a folder.

    Args:
        command: arguments of `hallulab`, without `--out`.
        folder: the run folder; what is printed comes into files beside it.
        before: called in the new process before the command.
    """
    return fork((*command, "--out", str(folder)), folder, before)


def fork(arguments: Sequence[str], printed: Path, before: Callable[[], object] = lambda: None) -> ForkProcess:
    """Fork a process that runs any command.

    Args:
        arguments: of `hallulab`.
        printed: what is printed comes into files of this name, with `.out` and `.err` added.
        before: called in the new process before the command.
    """
    process = FORKING.Process(target=_run_after, args=(before, arguments, printed))
    process.start()
    return process


def wait(process: ForkProcess, folder: Path) -> Ended:
    """Wait for a process's end, and return what a shell sees; a signal's number is a negative code."""
    process.join()
    return Ended(process.exitcode or 0, *_read_printed(folder))


def run(command: Sequence[str], folder: Path, before: Callable[[], object] = lambda: None) -> Ended:
    """Run a command to its end; see `start`."""
    return wait(start(command, folder, before), folder)


def run_here(command: Sequence[str], folder: Path) -> Ended:
    """Run a command into a folder in this process, so that its forks have all that it imports."""
    return end_here((*command, "--out", str(folder)), folder)


def end_here(arguments: Sequence[str], printed: Path) -> Ended:
    """Run any command in this process, likewise; see `fork`."""
    code = 0
    try:
        _run(arguments, printed)
    except SystemExit as stopped:
        code = int(stopped.code or 0)
    return Ended(code, *_read_printed(printed))


def _run_after(before: Callable[[], object], arguments: Sequence[str], printed: Path) -> None:
    before()
    _run(arguments, printed)


def _run(arguments: Sequence[str], printed: Path) -> None:
    from hallulab.simulator.cli.main import main

    sys.argv = ["hallulab", *arguments]
    out_file, err_file = _printed(printed)
    with (
        words_for_vectors(),
        out_file.open("w", encoding="utf-8") as out,
        err_file.open("w", encoding="utf-8") as err,
        contextlib.redirect_stdout(out),
        contextlib.redirect_stderr(err),
    ):
        main()


def _printed(folder: Path) -> tuple[Path, Path]:
    return folder.with_suffix(".out"), folder.with_suffix(".err")


def _read_printed(folder: Path) -> tuple[str, str]:
    out, err = (path.read_text(encoding="utf-8") for path in _printed(folder))
    return out, err
