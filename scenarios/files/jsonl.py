"""JSON lines: one reader for all files, and a writer of journals that survive a kill at any moment."""

from __future__ import annotations

import contextlib
import errno
import logging
import os
from collections.abc import Iterable, Iterator
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from hallulab.scenarios.errors import OperationalError, UsageError
from hallulab.scenarios.files.json_text import is_unfinished, parse_json

_log = logging.getLogger(__name__)

_BLOCK = 65536


def parse_lines(lines: Iterable[bytes], path: Path) -> Iterator[tuple[int, Any]]:
    """Yield (line number from 1, value) of each line that is not blank.

    Args:
        lines: lines of an open or unpacked file.
        path: the file, for errors.

    Raises:
        UsageError: a line is not strict JSON (`parse_json`).
    """
    for number, line in enumerate(lines, start=1):
        if line.strip():
            yield number, _parse_value(line, number, path)


def read_lines(path: Path) -> Iterator[tuple[int, Any]]:
    """Yield (line number, value) of each line of `read_placed_lines`."""
    for number, _, value in read_placed_lines(path):
        yield number, value


def read_placed_lines(path: Path) -> Iterator[tuple[int, int, Any]]:
    """Yield (line number from 1, place of its first byte, value) of each line that `LineWriter` wrote.

    Blank lines are left out; nothing is yielded if there is no file. A last line that a killed process left
    unfinished is skipped with a warning.

    Raises:
        UsageError: as `parse_lines`, or `path` is no file (a folder, a pipe).
    """
    if not path.exists():
        return
    if not path.is_file():
        raise UsageError(f"{path}: this is no file. Put the file there, or delete it.")
    with path.open("rb") as file:
        place = 0
        for number, line in enumerate(_drop_torn_line(file, path), start=1):
            if line.strip():
                yield number, place, _parse_value(line, number, path)
            place += len(line)


def _drop_torn_line(file: Iterable[bytes], path: Path) -> Iterator[bytes]:
    for line in file:
        if not line.endswith(b"\n") and _is_torn(line):
            _warn_of_torn_line(path)
            return
        yield line


def _parse_value(line: bytes, number: int, path: Path) -> Any:
    try:
        return parse_json(line.decode("utf-8-sig" if number == 1 else "utf-8"))
    except UnicodeDecodeError as error:
        raise UsageError(f"{path}, line {number}: the text is not UTF-8. Save the file as UTF-8.") from error
    except ValueError as error:
        raise UsageError(
            f"{path}, line {number}: not valid JSON ({error}). Correct or delete the line."
        ) from error


def _is_torn(line: bytes) -> bool:
    """Return whether a last line without a newline is unfinished.

    It may be whole: many editors leave the newline out.
    """
    return is_unfinished(line.decode("utf-8", "replace"))


def _warn_of_torn_line(path: Path) -> None:
    # Readers and writers give the same text, so that it can be shown once.
    _log.warning(
        "%s: the last line is unfinished, as a killed command leaves it; it does not count, and whoever "
        "writes to the file removes it.",
        path,
    )


def require_writable(path: Path) -> None:
    """Raise OperationalError where `LineWriter` would not open a file or make it; nothing is written."""
    place = next(one for one in (path, *path.absolute().parents) if os.path.lexists(one))
    if place != path and not place.is_dir():
        raise OperationalError(f"cannot write {path}: {os.strerror(errno.ENOTDIR)}.")
    if not os.access(place, os.W_OK):
        raise OperationalError(f"cannot write {path}: {os.strerror(errno.EACCES)}.")


class LineWriter:
    """Appends lines. The operating system has the whole line before `append` returns.

    Opening removes a last line that a killed process left unfinished, with a warning. If only the newline is
    missing, it is added.

    Raises:
        OperationalError: the file cannot be opened or a line cannot be written (full disk).
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            self._descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_APPEND, 0o644)
            self._end_last_line()
        except OSError as error:
            raise OperationalError(f"cannot write {path}: {error.strerror}.") from error

    def _end_last_line(self) -> None:
        size = os.fstat(self._descriptor).st_size
        start, pieces = size, list[bytes]()
        while start > 0 and not (pieces and b"\n" in pieces[-1]):
            length = min(_BLOCK, start)
            start -= length
            pieces.append(os.pread(self._descriptor, length, start))
        tail = b"".join(reversed(pieces))
        last = tail[tail.rfind(b"\n") + 1 :]
        if last and _is_torn(last):
            _warn_of_torn_line(self.path)
            os.ftruncate(self._descriptor, size - len(last))
        elif last:
            self._write(b"\n")

    def append(self, line: str) -> None:
        """Write `line` and a newline; if the disk is full, nothing of it."""
        size = os.fstat(self._descriptor).st_size
        try:
            self._write(line.encode() + b"\n")
        except OSError as error:
            # A device has no size to restore; readers skip a torn line anyway.
            with contextlib.suppress(OSError):
                os.ftruncate(self._descriptor, size)
            raise OperationalError(
                f"cannot write {self.path}: {error.strerror}. What was written before is intact; "
                "make room and start again to go on."
            ) from error

    def _write(self, data: bytes) -> None:
        if os.write(self._descriptor, data) != len(data):
            raise OSError(28, "No space left on device")

    def close(self) -> None:
        """Close the file; further appends fail."""
        os.close(self._descriptor)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()
