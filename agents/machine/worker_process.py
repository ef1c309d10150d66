"""A process that runs other people's packages for us: it speaks in lines of JSON and ends with us."""

from __future__ import annotations

import json
import os
import queue
import select
import signal
import subprocess
import threading
import time
import weakref
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import IO, Any, Protocol

from hallulab.agents.machine.supervised import start_supervised, worker_variables
from hallulab.agents.models.redaction import remove_keys
from hallulab.scenarios.errors import OperationalError

LOOP = Path(__file__).with_name("worker_loop.py")
"""The main loop that workers run in."""

LOADING_SECONDS = 1800.0
"""Time for a worker to load its packages and weights, or to download them the first time."""
GRACE_SECONDS = 2.0
"""Time for a worker to end by itself when it is no longer needed."""
LONGEST_LINE = 1 << 24
"""Bytes of a message at most."""
MOST_LINES = 4
"""Messages that may wait. A correct worker has one; nothing is read of a worker with more."""
LAST_WORDS = 4000
"""Bytes of standard error that are kept."""
_BLOCK = 1 << 20
"""Bytes of standard error that are read at once: a bot may print without end, and each reading stops us."""


class WorkerError(OperationalError):
    """A worker gave no (valid) answer."""


class WorkerSilent(WorkerError):
    """A worker exceeded its time limit and was ended."""


class WorkerStopped(WorkerError):
    """The worker was ended by `WorkerProcess.stop`."""


class Supervised(Protocol):
    """A worker whose supervisor ends it, with all that it started, when it is told to or we end."""

    @property
    def output(self) -> IO[bytes]:
        """Its standard output."""
        ...

    @property
    def errors(self) -> IO[bytes]:
        """Its standard error."""
        ...

    def kill(self) -> None:
        """Have it and all that it started ended. Does nothing if they have ended."""
        ...

    def poll(self) -> int | None:
        """Return its exit code (128 + n when signal n ended it); None: it runs."""
        ...

    def wait(self, timeout: float | None = None) -> int:
        """Wait for its end and return its exit code.

        Raises:
            subprocess.TimeoutExpired: it runs on after so many seconds.
        """
        ...


class Worker:
    """A worker under a supervisor: none of its processes outlives us, however we end.

    It is ended when nothing refers to this object any more.

    Args:
        process: the worker, as it was started.
        given: where it reads; not buffered.
    """

    def __init__(self, process: Supervised, given: IO[bytes]) -> None:
        self.stopped = False
        """True if `stop` was called."""
        self._process, self._input = process, given
        self._end = weakref.finalize(self, _end, process, given)
        self._lines: queue.SimpleQueue[bytes] = queue.SimpleQueue()
        threading.Thread(target=_read, args=(process.output, self._lines), daemon=True).start()
        self._last_words = _LastWords(process.errors)

    def stop(self) -> None:
        """End the worker at once and wait for its end. Does nothing if it has ended."""
        self.stopped = True
        self._process.kill()
        self._end()
        with suppress(
            subprocess.TimeoutExpired
        ):  # if the system does not release a process, the supervisor waits for it
            self._process.wait(GRACE_SECONDS)

    def send(self, message: Mapping[str, Any], timeout_s: float) -> None:
        """Send a message to the worker.

        Raises:
            WorkerSilent: it did not read within the limit.
        """
        if not self._write(json.dumps(message).encode("ascii") + b"\n", timeout_s):
            self.stop()
            raise WorkerSilent(f"its worker read nothing for {timeout_s:g} seconds and was ended")

    def _write(self, line: bytes, timeout_s: float) -> bool:
        """Write a line; return False if the worker did not read it within the limit."""
        ends, left = time.monotonic() + timeout_s, memoryview(line)
        with suppress(OSError, ValueError):  # an ended worker is noticed when its answer is read
            os.set_blocking(self._input.fileno(), False)
            waiting = select.poll()
            waiting.register(self._input, select.POLLOUT)
            while left:
                if not waiting.poll(max(0.0, ends - time.monotonic()) * 1000):
                    return False
                left = left[self._input.write(left) or 0 :]
        return True

    def receive(self, timeout_s: float) -> bytes:
        """Return the worker's next line. After an error the worker is gone.

        Raises:
            WorkerStopped: `stop` was called meanwhile or before.
            WorkerSilent: it sent nothing within the limit.
            WorkerError: it ended, or sent a line of more than `LONGEST_LINE` bytes.
        """
        try:
            line = self._lines.get(timeout=timeout_s)
        except queue.Empty:
            self.stop()
            raise WorkerSilent(f"its worker was silent for {timeout_s:g} seconds and was ended") from None
        if not line:
            raise self._how_it_ended()
        if len(line) == LONGEST_LINE and not line.endswith(b"\n"):
            self.stop()
            raise WorkerError(f"its worker said more than {LONGEST_LINE >> 20} MiB at once and was ended")
        return line

    def _how_it_ended(self) -> WorkerError:
        """Make an error from the exit code and last words of a worker that has closed its output."""
        if self.stopped:
            return WorkerStopped("its worker was ended")
        deadline = time.monotonic() + GRACE_SECONDS
        while self._process.poll() is None and time.monotonic() < deadline:
            time.sleep(0.01)
        code = self._process.poll()
        self.stop()
        said = self._last_words.line()
        if code is None:
            ending = "closed its output"
        elif code <= 128 or code - 128 not in set(signal.Signals):
            ending = f"ended with exit code {code}"
        else:
            ending = f"was ended by the signal {signal.Signals(code - 128).name}"
        return WorkerError(f"its worker {ending}" + (f" ({said})" if said else ""))


class WorkerProcess(Worker):
    """A worker that is a program of its own.

    Raises:
        WorkerError: it does not start.
    """

    def __init__(self, command: Sequence[str], environ: Mapping[str, str]) -> None:
        try:
            theirs, ours = os.pipe()
            try:
                program = Program(command, theirs, environ)
            except OSError:
                os.close(ours)
                raise
            finally:
                os.close(theirs)
        except OSError as error:
            raise WorkerError(f"its worker does not start ({error.strerror})") from error
        super().__init__(program, os.fdopen(ours, "wb", buffering=0))


class Program:
    """A program under a supervisor of its own (a `Supervised`).

    Args:
        reads: the descriptor of its standard input, which the caller closes afterwards.

    Raises:
        OSError: it does not start.
    """

    def __init__(self, command: Sequence[str], reads: int, environ: Mapping[str, str]) -> None:
        self._process = start_supervised(
            command,
            output=subprocess.PIPE,
            errors=subprocess.PIPE,
            reads=reads,
            environ=worker_variables(environ),
            grace=0.0,
        )
        assert self._process.stdout is not None
        assert self._process.stderr is not None
        self.output, self.errors = self._process.stdout, self._process.stderr

    def kill(self) -> None:
        """See `Supervised`."""
        assert self._process.stdin is not None
        with suppress(OSError):
            self._process.stdin.close()

    def poll(self) -> int | None:
        """See `Supervised`."""
        return self._process.poll()

    def wait(self, timeout: float | None = None) -> int:
        """See `Supervised`."""
        return self._process.wait(timeout)


class _LastWords:
    """Empties a worker's standard error and keeps its end."""

    def __init__(self, errors: IO[bytes]) -> None:
        self._kept = b""
        self._thread = threading.Thread(target=self._read, args=(errors,), daemon=True)
        self._thread.start()

    def _read(self, errors: IO[bytes]) -> None:
        with errors:
            while part := os.read(errors.fileno(), _BLOCK):
                self._kept = (self._kept + part)[-LAST_WORDS:]

    def line(self) -> str:
        """Return the last line of a worker that has ended, shortened."""
        self._thread.join(GRACE_SECONDS)  # a process that the worker left behind may hold the pipe open
        lines = self._kept.decode(errors="replace").splitlines()
        if len(self._kept) == LAST_WORDS:
            del lines[0]  # its beginning is lost, perhaps with half of a key
        said = [line.strip() for line in lines if line.strip()]
        return remove_keys(said[-1])[:300] if said else ""


def _read(output: IO[bytes], lines: queue.SimpleQueue[bytes]) -> None:
    """Put a worker's lines into the queue, and an empty one at the end."""
    with output:
        while lines.qsize() < MOST_LINES and (line := output.readline(LONGEST_LINE)):
            lines.put(line)
    lines.put(b"")


def _end(process: Supervised, given: IO[bytes]) -> None:
    """Close the worker's input, which ends it, and kill it if it does not end in time.

    A thread does the waiting, because the caller may be the event loop. If we end meanwhile, the supervisor
    ends the worker.
    """
    with suppress(OSError):
        given.close()

    def wait() -> None:
        with suppress(subprocess.TimeoutExpired):
            process.wait(GRACE_SECONDS)
        process.kill()
        process.wait()

    threading.Thread(target=wait, daemon=True).start()
