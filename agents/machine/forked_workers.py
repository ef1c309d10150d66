"""Fresh forks of a prepared worker. See `fork_loop.py`, which runs in the prepared process."""

from __future__ import annotations

import json
import os
import select
import socket
import subprocess
import sys
import threading
import weakref
from collections.abc import Mapping, Sequence
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import IO, Any, cast

from hallulab.agents.machine.worker_process import LOADING_SECONDS, LOOP, Program, Worker, WorkerError

FORK_LOOP = Path(__file__).with_name("fork_loop.py")
CAN_FORK = sys.platform == "linux"
"""True if forks can be supervised here. Elsewhere libraries of the system do not bear them, either."""
_KILLED = 128 + 9


class PreparedWorker:
    """A process that has imported what a worker needs. It ends when nothing refers to this object any more.

    Args:
        worker: the worker's file, which has a function `prepare`.

    Raises:
        WorkerError: it does not start.
    """

    def __init__(self, python: str, worker: Path, environ: Mapping[str, str]) -> None:
        theirs, self._asks = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self._handover = threading.Lock()
        with theirs:
            try:
                program = Program([python, str(FORK_LOOP), str(LOOP), str(worker)], theirs.fileno(), environ)
            except OSError as error:
                self._asks.close()
                raise WorkerError(f"its worker does not start ({error.strerror})") from error
        self._process = Worker(program, cast(IO[bytes], self._asks.makefile("wb", buffering=0)))
        self._end = weakref.finalize(self, self._asks.close)

    def prepare(self, configuration: Mapping[str, Any]) -> bytes:
        """Import what the worker needs; return what the process says of that. Blocks.

        Raises:
            WorkerError: it says nothing.
        """
        with suppress(OSError):  # an ended process is noticed when its answer is read
            self._asks.send(json.dumps(configuration).encode("ascii"))
        return self._process.receive(LOADING_SECONDS)

    def teach(self, imports: Sequence[str]) -> None:
        """Have modules imported that a worker has imported since it was forked, so that others need not."""
        with self._handover, suppress(OSError):  # it has ended, or there are too many of them
            self._asks.send(json.dumps({"imports": list(imports)}).encode("ascii"))

    def fork(self) -> Worker:
        """Return a fresh worker.

        Raises:
            OSError: the prepared process has ended, or there is no descriptor left.
        """
        with ExitStack() as theirs, ExitStack() as ours:
            ends = []
            for reads in (True, False, False):
                reading, writing = os.pipe()
                theirs.callback(os.close, reading if reads else writing)
                ours.callback(os.close, writing if reads else reading)
                ends.append((reading, writing) if reads else (writing, reading))
            alive, above = socket.socketpair()
            theirs.callback(above.close)
            ours.callback(alive.close)
            with self._handover:
                socket.send_fds(self._asks, [b"f"], [*(end for end, _ in ends), above.fileno()])
            ours.pop_all()
        given, output, errors = (end for _, end in ends)
        return Worker(_Fork(self, output, errors, alive), os.fdopen(given, "wb", buffering=0))

    def stop(self) -> None:
        """End the process and its forks at once. Blocks for a moment."""
        self._process.stop()
        self._end()


class _Fork:
    """A fork of a prepared worker (a `Supervised`)."""

    def __init__(self, prepared: PreparedWorker, output: int, errors: int, alive: socket.socket) -> None:
        self._prepared = prepared  # which must not end before
        self._alive = alive
        self._code: int | None = None
        self._reading = threading.Lock()
        weakref.finalize(self, alive.close).atexit = False  # a thread may wait for it then
        self.output, self.errors = os.fdopen(output, "rb"), os.fdopen(errors, "rb")

    def kill(self) -> None:
        """See `Supervised`."""
        with suppress(OSError):  # it has ended
            self._alive.shutdown(socket.SHUT_WR)

    def poll(self) -> int | None:
        """See `Supervised`."""
        try:
            return self.wait(0)
        except subprocess.TimeoutExpired:
            return None

    def wait(self, timeout: float | None = None) -> int:
        """See `Supervised`."""
        while self._code is None:
            waiting = select.poll()  # `select` knows no descriptor above 1,023
            waiting.register(self._alive, select.POLLIN)
            if not waiting.poll(None if timeout is None else timeout * 1000):
                raise subprocess.TimeoutExpired("worker", timeout or 0)
            with self._reading:
                if self._code is None:
                    # Nothing is said if somebody has killed the process that would.
                    self._code = int(self._alive.recv(16) or _KILLED)
        return self._code
