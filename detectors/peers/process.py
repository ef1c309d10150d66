"""A peer's worker process: started, spoken to, and ended with us."""

from __future__ import annotations

import json
import os
import queue
import signal
import subprocess
import tempfile
import threading
import time
import weakref
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from typing import IO, Any

from detectors.peers.protocol import (
    Abstained,
    Answers,
    Ask,
    Failed,
    Fatal,
    Judged,
    Message,
    Prompt,
    Ready,
    Request,
    WorkerError,
    read_message,
)

LOADING_SECONDS = 1800.0
"""What a worker gets to load its weights, or to download them the first time."""
GRACE_SECONDS = 2.0
"""What a worker gets to end by itself when it is no longer needed."""
LONGEST_LINE = 1 << 24
"""Bytes of a message; a longer one is cut, and so is none."""

Answerer = Callable[[Sequence[Prompt]], tuple[str, ...]]
"""Has a worker's prompts answered by the served model."""


class Worker:
    """A worker process, which `load` makes ready for one request at a time.

    Args:
        command: program and arguments.

    Raises:
        WorkerError: it does not start.
    """

    def __init__(self, command: Sequence[str]) -> None:
        self._errors = tempfile.TemporaryFile()  # noqa: SIM115 - it lives as long as the process
        try:
            self._process = subprocess.Popen(  # noqa: S603 (no shell; the caller passes our own commands)
                list(command),
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=self._errors,
                env=_environ(),
                start_new_session=True,
            )
        except OSError as error:
            self._errors.close()
            raise WorkerError(f"its worker does not start ({error.strerror}: {command[0]})") from error
        # Ends the process when this object is collected, and at the latest when we end.
        self._end = weakref.finalize(self, _end, self._process, self._errors)
        self._lines: queue.SimpleQueue[bytes] = queue.SimpleQueue()
        threading.Thread(target=_read, args=(self._process.stdout, self._lines), daemon=True).start()

    def load(self, configuration: Mapping[str, Any]) -> None:
        """Have the worker load its model.

        Raises:
            WorkerError: it cannot; the sentence says why, and the worker is gone.
        """
        self._send(configuration)
        first = self._receive(LOADING_SECONDS)
        if not isinstance(first, Ready):
            self.stop()
            reason = first.fatal if isinstance(first, Fatal) else "it judges before it is asked"
            raise WorkerError(f"its worker cannot load its model ({reason})")

    def judge(self, request: Request, answer: Answerer, timeout_s: float) -> Judged | Abstained | Failed:
        """What the worker says of a reply.

        Args:
            request: the reply.
            answer: asked where the worker wants the served model's answers. What it raises is raised here
                when the worker has heard of it.
            timeout_s: seconds without a message after which the worker is ended.

        Raises:
            WorkerError: it ended, was silent for too long, or broke the protocol; it is gone then.
        """
        self._send(request.model_dump())
        refusal: BaseException | None = None
        while True:
            message = self._receive(timeout_s)
            if isinstance(message, Ready | Fatal) or message.id != request.id:
                self.stop()
                raise WorkerError(f"its worker answered out of turn ({type(message).__name__})")
            if not isinstance(message, Ask):
                if refusal is not None:
                    raise refusal
                return message
            try:
                answers = Answers(id=request.id, answers=answer(message.ask))
            except BaseException as error:  # noqa: BLE001 - kept, and raised when the worker knows
                refusal = error
                answers = Answers(id=request.id, refused=str(error))
            self._send(answers.model_dump())

    def stop(self) -> None:
        """End the worker at once. Harmless when it has ended."""
        with suppress(ProcessLookupError, PermissionError):
            if self._end.alive:
                os.killpg(self._process.pid, signal.SIGKILL)
        self._end()

    def _send(self, message: Mapping[str, Any]) -> None:
        assert self._process.stdin is not None
        line = json.dumps(message).encode("ascii") + b"\n"
        with suppress(OSError, ValueError):  # a worker that has gone is noticed when its answer is read
            self._process.stdin.write(line)
            self._process.stdin.flush()

    def _receive(self, timeout_s: float) -> Message:
        try:
            line = self._lines.get(timeout=timeout_s)
        except queue.Empty:
            self.stop()
            raise WorkerError(f"its worker was silent for {timeout_s:g} seconds and was ended") from None
        if not line:
            raise WorkerError(self._how_it_ended())
        try:
            return read_message(line)
        except WorkerError:
            self.stop()
            raise

    def _how_it_ended(self) -> str:
        """Exit code and last words of a worker that has closed its output."""
        if not self._end.alive:
            return "its worker was ended"
        deadline = time.monotonic() + GRACE_SECONDS
        while self._process.poll() is None and time.monotonic() < deadline:
            time.sleep(0.01)
        code = self._process.poll()
        said = _tail(self._errors)
        self.stop()
        ended = "closed its output" if code is None else f"ended with exit code {code}"
        return f"its worker {ended}" + (f" ({said})" if said else "")


def _environ() -> dict[str, str]:
    """Our environment without keys, which somebody else's packages have no need of."""
    kept = {name: value for name, value in os.environ.items() if "API_KEY" not in name.upper()}
    return {
        **kept,
        "HF_HUB_DISABLE_TELEMETRY": "1",
        "LITELLM_LOCAL_MODEL_COST_MAP": "True",
        "TOKENIZERS_PARALLELISM": "false",
    }


def _read(output: IO[bytes], lines: queue.SimpleQueue[bytes]) -> None:
    """Hand over a worker's lines, and an empty one at its end."""
    with output:
        while line := output.readline(LONGEST_LINE):
            lines.put(line)
    lines.put(b"")


def _tail(errors: IO[bytes]) -> str:
    """The last line on standard error, shortened."""
    size = errors.seek(0, os.SEEK_END)
    errors.seek(max(0, size - 4000))
    lines = [line.strip() for line in errors.read().decode(errors="replace").splitlines() if line.strip()]
    return lines[-1][:300] if lines else ""


def _end(process: subprocess.Popen[bytes], errors: IO[bytes]) -> None:
    """Close the worker's input, which ends it; make sure that it does."""
    with suppress(OSError):
        if process.stdin is not None:
            process.stdin.close()
    try:
        process.wait(GRACE_SECONDS)
    except subprocess.TimeoutExpired:
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()
    errors.close()
