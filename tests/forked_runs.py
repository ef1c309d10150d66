"""Runs of `hallulab` in processes of their own, forked from one that has done such a run before.

A new process would import for two seconds and more before anything happens. `driver` gives a process to fork
from that holds no thread of ours.
"""

from __future__ import annotations

import contextlib
import multiprocessing
import sys
from collections.abc import Callable, Sequence
from concurrent.futures import ProcessPoolExecutor
from multiprocessing.context import ForkProcess
from pathlib import Path

from tests.fuzz.tiny_run import words_for_vectors
from tests.simulator.command_line import Ended

_FORKING = multiprocessing.get_context("fork")
_SPAWNING = multiprocessing.get_context("spawn")


def driver(processes: int = 1) -> ProcessPoolExecutor:
    """Return new processes to run functions in that fork."""
    return ProcessPoolExecutor(processes, mp_context=_SPAWNING)


def start(command: Sequence[str], folder: Path, before: Callable[[], object] = lambda: None) -> ForkProcess:
    """Fork a process that runs a command into a folder.

    Args:
        command: arguments of `hallulab`, without `--out`.
        folder: the run folder; what is printed comes into files beside it.
        before: called in the new process before the command.
    """
    process = _FORKING.Process(target=_run_after, args=(before, command, folder))
    process.start()
    return process


def wait(process: ForkProcess, folder: Path) -> Ended:
    """Wait for a process's end, and return what a shell sees; a signal's number is a negative code."""
    process.join()
    out, err = (path.read_text(encoding="utf-8") for path in _printed(folder))
    return Ended(process.exitcode or 0, out, err)


def run(command: Sequence[str], folder: Path, before: Callable[[], object] = lambda: None) -> Ended:
    """Run a command to its end; see `start`."""
    return wait(start(command, folder, before), folder)


def run_here(command: Sequence[str], folder: Path) -> None:
    """Run a command in this process, so that its forks have all that it imports."""
    with contextlib.suppress(SystemExit):
        _run(command, folder)


def _run_after(before: Callable[[], object], command: Sequence[str], folder: Path) -> None:
    before()
    _run(command, folder)


def _run(command: Sequence[str], folder: Path) -> None:
    from hallulab.simulator.cli.main import main

    sys.argv = ["hallulab", *command, "--out", str(folder)]
    out_file, err_file = _printed(folder)
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
