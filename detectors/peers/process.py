"""A peer's worker process: started, spoken to, and ended with us."""

from __future__ import annotations

import json
import os
import queue
import re
import signal
import subprocess
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
MOST_LINES = 4
"""Messages that may wait; a worker that keeps to its turns has one. With more it is no longer listened to."""
LAST_WORDS = 4000
"""Bytes of standard error that are kept."""

_NEEDED = re.compile(
    r"(HF_TOKEN|HF_TOKEN_PATH|HUGGING_FACE_HUB_TOKEN)|(?!\w*(KEY|TOKEN|SECRET|PASSWORD))("
    r"PATH|HOME|USER|LOGNAME|TZ|LANG|LC_\w+|TMPDIR|TEMP|TMP|XDG_\w+|(LD|DYLD)_\w+"
    r"|(HTTPS?|ALL|NO)_PROXY|SSL_CERT_(FILE|DIR)|REQUESTS_CA_BUNDLE|CURL_CA_BUNDLE"
    r"|(HF|HUGGINGFACE|TRANSFORMERS|SAFETENSORS|NLTK|OMP|GOMP|KMP|MKL|OPENBLAS|MALLOC)_\w+"
    r"|(TORCH|PYTORCH|TRITON|CUDA|CUBLAS|CUDNN|NCCL|NVIDIA|HIP|HSA|ROCR|ROCM)_\w+)",
    re.IGNORECASE,
)
"""Variables that the peers' packages need: of the system, the network, the model hub, threads and
accelerators. The hub's token is among them, for weights that it does not give to everybody."""

Answerer = Callable[[Sequence[Prompt]], tuple[str, ...]]
"""Has a worker's prompts answered by the served model."""


class WorkerStopped(WorkerError):
    """The worker was ended by `Worker.stop`."""


class Worker:
    """A worker process, which `load` makes ready for one request at a time.

    Args:
        command: program and arguments.

    Raises:
        WorkerError: it does not start.
    """

    def __init__(self, command: Sequence[str]) -> None:
        self.stopped = False
        """Whether `stop` was called."""
        try:
            self._process = subprocess.Popen(  # noqa: S603 (no shell; the caller passes our own commands)
                list(command),
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                env=_environ(),
                start_new_session=True,
            )
        except OSError as error:
            raise WorkerError(f"its worker does not start ({error.strerror}: {command[0]})") from error
        # Ends the process when this object is collected, and at the latest when we end.
        self._end = weakref.finalize(self, _end, self._process)
        self._lines: queue.SimpleQueue[bytes] = queue.SimpleQueue()
        threading.Thread(target=_read, args=(self._process.stdout, self._lines), daemon=True).start()
        assert self._process.stderr is not None
        self._last_words = _LastWords(self._process.stderr)

    def load(self, configuration: Mapping[str, Any]) -> None:
        """Have the worker load its model.

        Raises:
            WorkerStopped: `stop` was called meanwhile.
            WorkerError: it cannot; the sentence says why, and the worker is gone.
        """
        self._send(configuration, LOADING_SECONDS)
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
            timeout_s: seconds without a message, or without taking ours, after which the worker is ended.

        Raises:
            WorkerStopped: `stop` was called meanwhile, or before.
            WorkerError: it ended, was silent for too long, or broke the protocol; it is gone then.
        """
        self._send(request.model_dump(), timeout_s)
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
            self._send(answers.model_dump(), timeout_s)

    def stop(self) -> None:
        """End the worker at once. Harmless when it has ended."""
        self.stopped = True
        with suppress(ProcessLookupError, PermissionError):
            if self._end.alive:
                os.killpg(self._process.pid, signal.SIGKILL)
        self._end()

    def _send(self, message: Mapping[str, Any], timeout_s: float) -> None:
        assert self._process.stdin is not None
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
                self._process.stdin.write(line)
                self._process.stdin.flush()
        finally:
            patience.cancel()
        if late.is_set():
            patience.join()
            raise WorkerError(f"its worker read nothing for {timeout_s:g} seconds and was ended")

    def _receive(self, timeout_s: float) -> Message:
        try:
            line = self._lines.get(timeout=timeout_s)
        except queue.Empty:
            self.stop()
            raise WorkerError(f"its worker was silent for {timeout_s:g} seconds and was ended") from None
        if not line:
            raise self._how_it_ended()
        try:
            return read_message(line)
        except WorkerError:
            self.stop()
            raise

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
        ended = "closed its output" if code is None else f"ended with exit code {code}"
        return WorkerError(f"its worker {ended}" + (f" ({said})" if said else ""))


class _LastWords:
    """Empties a worker's standard error and keeps its end."""

    def __init__(self, errors: IO[bytes]) -> None:
        self._kept = b""
        self._thread = threading.Thread(target=self._read, args=(errors,), daemon=True)
        self._thread.start()

    def _read(self, errors: IO[bytes]) -> None:
        with errors:
            while part := os.read(errors.fileno(), LAST_WORDS):
                self._kept = (self._kept + part)[-LAST_WORDS:]

    def line(self) -> str:
        """The last line of a worker that has ended, shortened."""
        self._thread.join(GRACE_SECONDS)  # a process that the worker left behind may hold it open
        lines = [line.strip() for line in self._kept.decode(errors="replace").splitlines() if line.strip()]
        return lines[-1][:300] if lines else ""


def _environ() -> dict[str, str]:
    """What somebody else's packages need of our environment, which no key of ours is a part of."""
    return {
        **{name: value for name, value in os.environ.items() if _NEEDED.fullmatch(name)},
        "HF_HUB_DISABLE_TELEMETRY": "1",
        "LITELLM_LOCAL_MODEL_COST_MAP": "True",
        "TOKENIZERS_PARALLELISM": "false",
    }


def _read(output: IO[bytes], lines: queue.SimpleQueue[bytes]) -> None:
    """Hand over a worker's lines, and an empty one at its end."""
    with output:
        while lines.qsize() < MOST_LINES and (line := output.readline(LONGEST_LINE)):
            lines.put(line)
    lines.put(b"")


def _end(process: subprocess.Popen[bytes]) -> None:
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
