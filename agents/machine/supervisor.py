"""Runs one command and sees to it that nothing of it outlives us. Standard library only, run as a script.

    python supervisor.py GRACE_SECONDS INPUT COMMAND [ARGUMENT …]

`INPUT` is the descriptor that the command reads as its standard input, or `-` for none. The supervisor's own
is a pipe whose other end only our process holds. When that end closes (we ended, however we ended: also by
SIGKILL) or on SIGTERM, the command and all its descendants get SIGTERM, and SIGKILL after the grace period.
When the command ends by itself, what it left behind goes the same way, and its exit code is passed on. On
Linux, descendants that detached themselves are adopted (child subreaper) and ended as well.
"""

from __future__ import annotations

import ctypes
import os
import select
import signal
import subprocess
import sys
import time
from pathlib import Path
from types import FrameType

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
    asked: set[int] = set()
    while left := _left(command):
        late = time.monotonic() >= deadline
        for process in left - (set() if late else asked):
            _send(process, signal.SIGKILL if late else signal.SIGTERM)
        asked |= left
        time.sleep(POLL_SECONDS)


def _left(command: subprocess.Popen[bytes]) -> set[int]:
    """The command, while it runs, and its living descendants; ended ones are reaped."""
    running = command.poll() is None
    living = _descendants(os.getpid())
    for process in living - {command.pid}:
        try:
            os.waitpid(process, os.WNOHANG)
        except ChildProcessError:
            continue  # not our child: its own parent reaps it
    return {process for process in living if _is_alive(process)} | ({command.pid} if running else set())


def _descendants(root: int) -> set[int]:
    """Process numbers of all descendants, found by their parents' numbers."""
    children: dict[int, list[int]] = {}
    for process, parent in _processes():
        children.setdefault(parent, []).append(process)
    found: set[int] = set()
    waiting = [root]
    while waiting:
        for child in children.get(waiting.pop(), ()):
            if child not in found:
                found.add(child)
                waiting.append(child)
    return found


def _processes() -> list[tuple[int, int]]:
    """(process, parent) of every process, from /proc or, where there is none, from ps."""
    if Path("/proc/self/stat").exists():
        stats = [(int(entry.name), _stat(int(entry.name))) for entry in Path("/proc").glob("[0-9]*")]
        return [(process, int(stat[1])) for process, stat in stats if stat]
    listing = subprocess.run(["ps", "-A", "-o", "pid=,ppid="], capture_output=True, text=True, check=True)  # noqa: S607
    rows = [line.split() for line in listing.stdout.splitlines()]
    return [(int(process), int(parent)) for process, parent in rows]


def _stat(process: int) -> list[str]:
    """Fields of /proc/PID/stat from the state on (state, parent, …); empty when it is gone."""
    try:
        return (
            Path(f"/proc/{process}/stat")
            .read_text(encoding="utf-8", errors="replace")
            .rpartition(")")[2]
            .split()
        )
    except OSError:
        return []


def _is_alive(process: int) -> bool:
    """Whether it runs: neither gone nor a zombie that waits for its parent."""
    if Path("/proc/self/stat").exists():
        return (_stat(process) or ["Z"])[0] not in "ZX"
    try:
        os.kill(process, 0)
    except OSError:
        return False
    return True


def _send(process: int, number: signal.Signals) -> None:
    """Send a signal to a process that may end at this moment."""
    try:
        os.kill(process, number)
    except ProcessLookupError:
        return


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
