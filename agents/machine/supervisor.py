"""Run one command so that none of its processes outlives us. A script that needs psutil only.

    python supervisor.py GRACE_SECONDS INPUT COMMAND [ARGUMENT …]

`INPUT` is the descriptor of the command's standard input, or `-` for none. The supervisor's own standard
input is a pipe; only our process holds its other end. It closes when we end, even by SIGKILL. Then, or
on SIGTERM, the supervisor sends SIGTERM to the command and all its descendants, and SIGKILL after the grace
period. If the command ends by itself, the supervisor ends its remaining descendants in the same way and exits
with its exit code. On Linux it also ends descendants that detached themselves (child subreaper), and the
command gets SIGTERM if the supervisor is killed: Ray kills the children of an actor that it kills.
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
from functools import partial
from types import FrameType

import psutil

POLL_SECONDS = 0.1
"""Most seconds between two looks at what is left."""
FIRST_POLL_SECONDS = 0.005
"""Seconds before the second look: most processes end at once."""
PR_SET_PDEATHSIG = 1
PR_SET_CHILD_SUBREAPER = 36


def main(arguments: list[str]) -> int:
    """Run the command until it ends, our process closes the pipe, or SIGTERM comes; return its exit code."""
    stopping: list[int] = []

    def stop(number: int, frame: FrameType | None) -> None:
        stopping.append(number)

    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        signal.signal(number, stop)
    _set_of_linux(PR_SET_CHILD_SUBREAPER, 1)
    parent = os.getppid()
    given = subprocess.DEVNULL if arguments[1] == "-" else int(arguments[1])
    try:
        command = subprocess.Popen(  # noqa: S603 (no shell; the caller chose the command)
            arguments[2:],
            stdin=given,
            start_new_session=True,
            preexec_fn=partial(_set_of_linux, PR_SET_PDEATHSIG, signal.SIGTERM),
        )
    except OSError as error:
        print(f"cannot start {arguments[2]}: {error.strerror}", file=sys.stderr)
        return 1
    if given != subprocess.DEVNULL:
        os.close(given)
    watched = [0]
    if sys.platform == "linux":
        with contextlib.suppress(OSError):
            watched.append(os.pidfd_open(command.pid))  # can be read when the command has ended
    while command.poll() is None and not stopping and os.getppid() == parent:
        readable, _, _ = select.select(watched, [], [], POLL_SECONDS)
        if 0 in readable and not os.read(0, 4096):
            break
    _end_all(command, float(arguments[0]))
    code = command.wait()  # it may have ended since `_left` asked for its code
    return code if code >= 0 else 128 - code


def _set_of_linux(option: int, value: int) -> None:
    """Set an option of this process (`prctl`): who adopts orphans, or what it gets when its parent ends."""
    if sys.platform == "linux":
        ctypes.CDLL(None, use_errno=True).prctl(option, value, 0, 0, 0)


def _end_all(command: subprocess.Popen[bytes], grace: float) -> None:
    """Send SIGTERM to all that is left, and SIGKILL after the grace period, until nothing is left."""
    deadline, pause = time.monotonic() + grace, FIRST_POLL_SECONDS
    asked: set[psutil.Process] = set()
    while left := _left(command):
        late = time.monotonic() >= deadline
        # The command first: it might end by itself, and well, when it sees the end of a child.
        waiting = left - (set() if late else asked)
        for process in sorted(waiting, key=lambda process: process.pid != command.pid):
            with contextlib.suppress(psutil.NoSuchProcess):  # it may have just ended
                process.send_signal(signal.SIGKILL if late else signal.SIGTERM)
        asked |= left
        time.sleep(pause)
        pause = min(2 * pause, POLL_SECONDS)


def _left(command: subprocess.Popen[bytes]) -> set[psutil.Process]:
    """Return the command, if it runs, and its living descendants; reap the ended ones."""
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
