"""Have documents turned into text by a process that has bounds of memory and time.

The packages that read these formats take a hundred times the memory and minutes of time for a few kilobytes
that were made for it. One process reads all documents of a folder. It starts none itself, gets no key, and
ends with us: by its bounds, at the end of its input, and on Linux by a signal. So it needs no supervisor.
"""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import threading
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import IO, Self, cast

from hallulab.scenarios.errors import OperationalError, UsageError
from hallulab.scenarios.extras import require_extra
from hallulab.scenarios.files.json_text import read_json, replace_surrogates
from hallulab.scenarios.packs import conversion_worker
from hallulab.scenarios.packs.conversion_worker import LARGEST_TEXT, LONGEST_REASON, OUT_OF_MEMORY
from hallulab.scenarios.packs.kinds import KINDS, Extracted
from hallulab.scenarios.text.wording import render_one_line

MEMORY = 1 << 30
"""Bytes that the process may have; docs/design/security.md says what documents need."""

FIRST_SECONDS = 5.0
"""Processor time for all documents of a folder …"""
SECONDS_EACH = 0.05
"""… and more for each document …"""
SECONDS_PER_MEGABYTE = 20.0
"""… and for each million bytes of them."""

PATIENCE_S = 60.0
"""Seconds to wait for a text …"""
PATIENCE_TIMES = 10.0
"""… or so many times the processor time, if that is more: the machine may be busy."""

_LONGEST_LINE = 16 * LONGEST_REASON
_NEEDED = re.compile(r"PATH|HOME|TMPDIR|LANG|LC_\w+|PYTHONHOME|PYTHONPATH|(LD|DYLD)_\w+")
"""Environment variables that Python needs to start; no key is among them."""


class Conversion:
    """The process, for the documents of one folder. It starts with the first, and ends with the block.

    After a document that broke its bounds, a new one reads the next.
    """

    def __init__(self) -> None:
        self._seconds = FIRST_SECONDS
        self._started: subprocess.Popen[bytes] | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._end()

    def _end(self) -> int:
        """End the process, if there is one; return its exit code."""
        process, self._started = self._started, None
        if process is None:
            return 0
        process.kill()
        code = process.wait()
        for stream in _get_streams(process):
            with suppress(OSError):  # what it did not read any more
                stream.close()
        return code

    def read(self, path: Path, content: bytes) -> Extracted:
        """Return what a document says.

        Args:
            path: the document; its suffix says how it is read.

        Raises:
            UsageError: it cannot be read, or not within the bounds, or the extra `documents` is not
                installed.
            OperationalError: the process does not start.
        """
        suffix = path.suffix.lower()
        kind = KINDS[suffix]
        require_extra("documents", *kind.needs, use=f"{path}: {kind.name}")
        self._seconds += SECONDS_EACH + SECONDS_PER_MEGABYTE * len(content) / 1e6
        request = {"suffix": suffix, "bytes": len(content), "seconds": self._seconds}
        try:
            answer = self._exchange(json.dumps(request).encode("ascii") + b"\n" + content)
            found = Extracted(**json.loads(answer))
        except _Unread as error:
            raise UsageError(f"{path}: cannot be read as {kind.name} ({error}). {error.remedy}") from error
        return Extracted(
            _clean(found.text),
            found.title and _clean(found.title),
            tuple(render_one_line(note)[:LONGEST_REASON] for note in found.notes),
        )

    def _exchange(self, message: bytes) -> str:
        """Return the text with which the process answers a message."""
        process = self._started = self._started or _start()
        given, told = _get_streams(process)
        late = threading.Event()

        def give_up() -> None:
            late.set()
            process.kill()

        patience_s = max(PATIENCE_S, PATIENCE_TIMES * self._seconds)
        patience = threading.Timer(patience_s, give_up)
        patience.daemon = True  # else an interrupted command would wait for it
        patience.start()
        try:
            with suppress(BrokenPipeError):  # that it has ended is noticed when its answer is read
                given.write(message)
                given.flush()
            text, reason = _receive(told)
        finally:
            patience.cancel()
        if text is not None:
            return text
        if reason is not None:
            raise _Unread(reason, "Repair or decrypt it, or convert it to text.")
        code = self._end()
        if late.is_set():
            reason = f"no text within {patience_s:g} s"
        elif code == -signal.SIGXCPU:
            reason = f"it takes more than {self._seconds:.0f} s of processor time"
        elif code == OUT_OF_MEMORY:
            reason = f"it takes more than {MEMORY >> 20:,} MiB of memory"
        else:
            reason = f"its reader ended with code {code}"
        raise _Unread(reason, "Convert it to text, or remove it.")


def _clean(text: str) -> str:
    # Broken fonts give lone surrogates.
    return replace_surrogates(text).replace("\x00", "")


class _Unread(Exception):
    """A document that was not read; `remedy` is a sentence for the user."""

    def __init__(self, reason: str, remedy: str) -> None:
        super().__init__(reason)
        self.remedy = remedy


def _receive(told: IO[bytes]) -> tuple[str | None, str | None]:
    """Return the text or the error that the process tells; neither if it ended or broke the protocol."""
    try:
        answer = read_json(told.readline(_LONGEST_LINE))
        if "error" in answer:
            return None, render_one_line(str(answer["error"])[:LONGEST_REASON])
        size = int(answer["bytes"])
        text = told.read(size) if 0 <= size <= LARGEST_TEXT else b""
        return (text.decode("utf-8", "surrogatepass"), None) if len(text) == size else (None, None)
    except (ValueError, TypeError, KeyError):
        return None, None


def _start() -> subprocess.Popen[bytes]:
    """Start the process.

    Raises:
        OperationalError: it does not start.
    """
    command = [sys.executable, "-P", conversion_worker.__file__, str(MEMORY)]
    environ = {name: value for name, value in os.environ.items() if _NEEDED.fullmatch(name)}
    try:
        return subprocess.Popen(  # noqa: S603 (no shell; our own command)
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, env=environ
        )
    except OSError as error:
        raise OperationalError(f"cannot start a process that reads documents ({error.strerror}).") from error


def _get_streams(process: subprocess.Popen[bytes]) -> tuple[IO[bytes], IO[bytes]]:
    """Return what a process reads, and what it writes."""
    return cast(IO[bytes], process.stdin), cast(IO[bytes], process.stdout)
