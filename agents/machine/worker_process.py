"""A process that runs somebody else's packages for us: started, spoken to in lines of JSON, ended with us."""

from __future__ import annotations

import json
import os
import queue
import signal
import subprocess
import threading
import time
import weakref
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import IO, Any

from agents.machine.supervised import start_supervised
from agents.models.redaction import without_keys
from scenarios.errors import OperationalError

LOOP = Path(__file__).with_name("worker_loop.py")
"""The frame that workers run in."""

LOADING_SECONDS = 1800.0
"""What a worker gets to load its packages and weights, or to download them the first time."""
GRACE_SECONDS = 2.0
"""What a worker gets to end by itself when it is no longer needed."""
LONGEST_LINE = 1 << 24
"""Bytes of a message."""
MOST_LINES = 4
"""Messages that may wait; a worker that keeps to its turns has one. With more it is no longer listened to."""
LAST_WORDS = 4000
"""Bytes of standard error that are kept."""
_BLOCK = 1 << 20
"""Bytes of standard error that are read at once: a bot may print without end, and each reading stops us."""


class WorkerError(OperationalError):
    """A worker gave no (valid) answer."""


class WorkerSilent(WorkerError):
    """A worker took longer than it was given, and was ended."""


class WorkerStopped(WorkerError):
    """The worker was ended by `WorkerProcess.stop`."""


class WorkerProcess:
    """A worker process under the supervisor: nothing of it outlives us, however we end.

    It is ended when nothing refers to this object any more.

    Args:
        command: program and arguments.
        environ: its environment.

    Raises:
        WorkerError: it does not start.
    """

    def __init__(self, command: Sequence[str], environ: Mapping[str, str]) -> None:
        self.stopped = False
        """Whether `stop` was called."""
        try:
            self._process, self._input = _start(command, environ)
        except OSError as error:
            raise WorkerError(f"its worker does not start ({error.strerror})") from error
        self._end = weakref.finalize(self, _end, self._process, self._input)
        self._lines: queue.SimpleQueue[bytes] = queue.SimpleQueue()
        threading.Thread(target=_read, args=(self._process.stdout, self._lines), daemon=True).start()
        assert self._process.stderr is not None
        self._last_words = _LastWords(self._process.stderr)

    def stop(self) -> None:
        """End the worker at once, and wait until it has ended. Harmless when it has."""
        self.stopped = True
        _kill(self._process)
        self._end()
        with suppress(
            subprocess.TimeoutExpired
        ):  # what the system does not let go of, the supervisor waits for
            self._process.wait(GRACE_SECONDS)

    def send(self, message: Mapping[str, Any], timeout_s: float) -> None:
        """Tell it something.

        Raises:
            WorkerSilent: it does not read.
        """
        line = json.dumps(message).encode("ascii") + b"\n"
        late = threading.Event()

        def give_up() -> None:
            late.set()
            self.stop()

        # A pipe that nobody empties takes no more, and a write to it has no time limit of its own.
        patience = threading.Timer(timeout_s, give_up)
        patience.daemon = True
        patience.start()
        try:
            with suppress(OSError, ValueError):  # a worker that has gone is noticed when its answer is read
                self._input.write(line)
                self._input.flush()
        finally:
            patience.cancel()
        if late.is_set():
            patience.join()
            raise WorkerSilent(f"its worker read nothing for {timeout_s:g} seconds and was ended")

    def receive(self, timeout_s: float) -> bytes:
        """What it says next, a line.

        Raises:
            WorkerStopped: `stop` was called meanwhile, or before.
            WorkerSilent: it said nothing for that long.
            WorkerError: it ended, or said more than `LONGEST_LINE` at once. In every case it is gone.
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
        """Exit code and last words of a worker that has closed its output."""
        if self.stopped:
            return WorkerStopped("its worker was ended")
        deadline = time.monotonic() + GRACE_SECONDS
        while self._process.poll() is None and time.monotonic() < deadline:
            time.sleep(0.01)
        code = self._process.poll()
        self.stop()
        said = self._last_words.line()
        return WorkerError(f"its worker {_ending(code)}" + (f" ({said})" if said else ""))


def _start(command: Sequence[str], environ: Mapping[str, str]) -> tuple[subprocess.Popen[bytes], IO[bytes]]:
    """The supervisor's process, and what the worker reads."""
    theirs, ours = os.pipe()
    try:
        process = start_supervised(
            command,
            output=subprocess.PIPE,
            errors=subprocess.PIPE,
            reads=theirs,
            environ=environ,
            grace=0.0,
        )
    except OSError:
        os.close(ours)
        raise
    finally:
        os.close(theirs)
    return process, os.fdopen(ours, "wb")


def _ending(code: int | None) -> str:
    if code is None:
        return "closed its output"
    if code <= 128 or code - 128 not in set(signal.Signals):
        return f"ended with exit code {code}"
    return f"was ended by the signal {signal.Signals(code - 128).name}"


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
        """The last line of a worker that has ended, shortened."""
        self._thread.join(GRACE_SECONDS)  # a process that the worker left behind may hold it open
        lines = self._kept.decode(errors="replace").splitlines()
        if len(self._kept) == LAST_WORDS:
            del lines[0]  # its beginning is lost, and with it perhaps half of a key
        said = [line.strip() for line in lines if line.strip()]
        return without_keys(said[-1])[:300] if said else ""


def _read(output: IO[bytes], lines: queue.SimpleQueue[bytes]) -> None:
    """Hand over a worker's lines, and an empty one at its end."""
    with output:
        while lines.qsize() < MOST_LINES and (line := output.readline(LONGEST_LINE)):
            lines.put(line)
    lines.put(b"")


def _end(process: subprocess.Popen[bytes], given: IO[bytes]) -> None:
    """Close the worker's input, which ends it, and see to it that it does: beside us, who may be the event
    loop. When we end meanwhile, the supervisor does it."""
    with suppress(OSError):
        given.close()

    def wait() -> None:
        with suppress(subprocess.TimeoutExpired):
            process.wait(GRACE_SECONDS)
        _kill(process)
        process.wait()

    threading.Thread(target=wait, daemon=True).start()


def _kill(process: subprocess.Popen[bytes]) -> None:
    """Have the supervisor end the worker with all that it started."""
    assert process.stdin is not None
    with suppress(OSError):
        process.stdin.close()
