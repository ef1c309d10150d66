"""Workers that are processes on this machine, each with a pipe to the process that started it."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator, Sequence
from contextlib import suppress
from multiprocessing.connection import Connection
from typing import Any

from hallulab.agents.machine.supervised import worker_variables

# The path of this process, so that the same modules are found whatever the working directory holds.
_BEGIN = (
    "import json, sys; sys.path[:] = json.loads(sys.argv[1]); "
    "from hallulab.simulator.engine.worker import main; main(int(sys.argv[2]), sys.argv[3:])"
)


class Pipe:
    """Sends objects in both directions between a worker and the process that started it.

    Both are ours, and nobody else can write to it, so what is sent may be pickled. Several threads may send.

    Args:
        descriptor: of a stream socket.
    """

    def __init__(self, descriptor: int) -> None:
        self._connection = Connection(descriptor)
        self._sending = threading.Lock()

    def send(self, message: Any) -> None:
        """Send an object. If nobody is at the other end any more, who receives hears that."""
        with self._sending, suppress(OSError):
            self._connection.send(message)

    def __iter__(self) -> Iterator[Any]:
        """Yield what comes until the other end is closed."""
        with suppress(EOFError, OSError):
            while True:
                yield self._connection.recv()

    def close(self) -> None:
        """Close this end."""
        with self._sending:
            self._connection.close()


class ProcessLine:
    """Starts a worker as a process, and connects with it (a `WorkerLine`).

    Args:
        libraries: what it imports first.
    """

    def __init__(self, libraries: Sequence[str]) -> None:
        ours, theirs = socket.socketpair()
        with theirs:
            given = (json.dumps(sys.path), str(theirs.fileno()), *libraries)
            command = [sys.executable, "-P", "-c", _BEGIN, *given]
            # In a session of its own: Ctrl-C is for this process, which then ends the workers.
            self._process = subprocess.Popen(  # noqa: S603 (ours)
                command,
                pass_fds=[theirs.fileno()],
                stdin=subprocess.DEVNULL,
                env=worker_variables(os.environ),
                start_new_session=True,
            )
        self._pipe = Pipe(ours.detach())

    def send(self, message: Any) -> None:
        """See `WorkerLine`."""
        self._pipe.send(message)

    def __iter__(self) -> Iterator[Any]:
        """See `WorkerLine`."""
        yield from self._pipe

    def explain_end(self) -> str:
        """See `WorkerLine`."""
        code = self._process.wait()
        self._pipe.close()
        how = signal.Signals(-code).name if code < 0 else f"exit code {code}"
        return f"the worker process ended ({how})"

    def kill(self) -> None:
        """See `WorkerLine`."""
        self._process.kill()
