"""Start commands that cannot outlive this process."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import IO

from hallulab.agents.machine import supervisor
from hallulab.scenarios.transcript import Frozen

GRACE_SECONDS = 10.0
"""Time for a command to end after SIGTERM."""


def worker_variables(environ: Mapping[str, str]) -> dict[str, str]:
    """Return the environment variables of a worker process: without `PYTHONDONTWRITEBYTECODE`.

    With it, each worker compiles all that it imports, which takes longer than importing it.
    """
    return {name: value for name, value in environ.items() if name != "PYTHONDONTWRITEBYTECODE"}


def start_supervised(
    command: Sequence[str],
    *,
    output: IO[bytes] | int,
    errors: int = subprocess.STDOUT,
    reads: int | None = None,
    environ: Mapping[str, str] | None = None,
    grace: float = GRACE_SECONDS,
) -> subprocess.Popen[bytes]:
    """Start `command` under the supervisor, in its own session: a terminal's Ctrl-C does not reach it.

    Args:
        output: where its standard output goes: a file, or `subprocess.PIPE`.
        errors: where its standard error goes; by default to its output.
        reads: the descriptor of its standard input, which the caller closes afterwards; None: it has none.
        environ: its environment; None: ours.
        grace: seconds between SIGTERM and SIGKILL.

    Returns:
        The supervisor's process; its exit code is the command's. End it with `stop_supervised`.
    """
    given = "-" if reads is None else str(reads)
    return subprocess.Popen(  # noqa: S603 (no shell; callers pass our own commands)
        [sys.executable, "-I", str(Path(supervisor.__file__)), str(grace), given, *command],
        stdin=subprocess.PIPE,
        stdout=output,
        stderr=errors,
        env=environ,
        pass_fds=() if reads is None else (reads,),
        start_new_session=True,
    )


def stop_supervised(process: subprocess.Popen[bytes]) -> int:
    """Close our end of the pipe and wait until the command and all its descendants are gone.

    Returns:
        The command's exit code (128 + n when signal n ended it).
    """
    if process.stdin is not None:
        process.stdin.close()
    return process.wait()


class Ended(Frozen):
    """How a command ended."""

    code: int
    """Exit code; 128 + n when signal n ended it."""
    lines: tuple[str, ...]
    """Its output, standard error included, in lines."""


def run_supervised(
    command: Sequence[str], *, on_line: Callable[[str], None], environ: Mapping[str, str] | None = None
) -> Ended:
    """Run a command to its end; if we are interrupted, end it too.

    Args:
        environ: its environment; None: ours.
    """
    lines: list[str] = []
    process = start_supervised(command, output=subprocess.PIPE, environ=environ)
    try:
        for raw in process.stdout or ():
            lines.append(raw.decode(errors="replace").rstrip())
            on_line(lines[-1])
    finally:
        code = stop_supervised(process)
        if process.stdout is not None:
            process.stdout.close()
    return Ended(code=code, lines=tuple(lines))
