"""Runs one command and sees to it that nothing of it outlives us. A script that needs psutil only.

    python supervisor.py GRACE_SECONDS INPUT COMMAND [ARGUMENT …]

`INPUT` is the descriptor that the command reads as its standard input, or `-` for none. The supervisor's own
is a pipe whose other end only our process holds. When that end closes (we ended, however we ended: also by
SIGKILL) or on SIGTERM, the command and all its descendants get SIGTERM, and SIGKILL after the grace period.
When the command ends by itself, what it left behind goes the same way, and its exit code is passed on. On
Linux, descendants that detached themselves are adopted (child subreaper) and ended as well.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import select
import signal
import subprocess
import sys
import time
from types import FrameType

import psutil

POLL_SECONDS = 0.1
PR_SET_CHILD_SUBREAPER = 36


def main(arguments: list[str]) -> int:
    """Run the command until it ends, our end closes the pipe, or SIGTERM comes; return the exit code."""
    stopping: list[int] = []

    def stop(number: int, frame: FrameType | None) -> None:
        stopping.append(number)

    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        signal.signal(number, stop)
    _adopt_orphans()
    parent = os.getppid()
    given = subprocess.DEVNULL if arguments[1] == "-" else int(arguments[1])
    try:
        command = subprocess.Popen(  # noqa: S603 (no shell; the caller chose the command)
            arguments[2:], stdin=given, start_new_session=True
        )
    except OSError as error:
        print(f"cannot start {arguments[2]}: {error.strerror}", file=sys.stderr)
        return 1
    if given != subprocess.DEVNULL:
        os.close(given)
    while command.poll() is None and not stopping and os.getppid() == parent:
        readable, _, _ = select.select([0], [], [], POLL_SECONDS)
        if readable and not os.read(0, 4096):
            break
    _end_all(command, float(arguments[0]))
    return command.returncode if command.returncode >= 0 else 128 - command.returncode


def _adopt_orphans() -> None:
    """Become the parent of descendants whose own parent ends, so that they can still be found."""
    if sys.platform == "linux":
        ctypes.CDLL(None, use_errno=True).prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)


def _end_all(command: subprocess.Popen[bytes], grace: float) -> None:
    """SIGTERM to all that is left, SIGKILL when the grace period is over, until nothing is left."""
    deadline = time.monotonic() + grace
    asked: set[psutil.Process] = set()
    while left := _left(command):
        late = time.monotonic() >= deadline
        for process in left - (set() if late else asked):
            with contextlib.suppress(psutil.NoSuchProcess):  # it may end at this moment
                process.send_signal(signal.SIGKILL if late else signal.SIGTERM)
        asked |= left
        time.sleep(POLL_SECONDS)


def _left(command: subprocess.Popen[bytes]) -> set[psutil.Process]:
    """The command, while it runs, and its living descendants; ended ones are reaped."""
    command.poll()
    living = set()
    for process in psutil.Process().children(recursive=True):
        if process.pid != command.pid:
            with contextlib.suppress(ChildProcessError):  # not our child: its own parent reaps it
                os.waitpid(process.pid, os.WNOHANG)
        with contextlib.suppress(psutil.NoSuchProcess):
            if process.status() not in (psutil.STATUS_ZOMBIE, psutil.STATUS_DEAD):
                living.add(process)
    return living


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
