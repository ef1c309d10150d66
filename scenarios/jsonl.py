"""Append-only JSON-lines files that survive being killed at any moment."""

from __future__ import annotations

import contextlib
import json
import os
from collections.abc import Iterator
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from scenarios.errors import OperationalError, UsageError


def read_lines(path: Path) -> Iterator[tuple[int, Any]]:
    """Yield (line number from 1, parsed value) of each complete line; a torn last line is left out.

    Raises:
        UsageError: a complete line is not JSON.
    """
    if not path.exists():
        return
    with path.open("rb") as file:
        for number, line in enumerate(file, start=1):
            if not line.endswith(b"\n"):
                return
            if not line.strip():
                continue
            try:
                yield number, json.loads(line)
            except (ValueError, RecursionError) as error:
                raise UsageError(
                    f"{path}, line {number}: not valid JSON ({error}). Repair or delete that line."
                ) from error


class LineWriter:
    """Appends lines, each handed to the operating system whole before `append` returns.

    Opening drops a torn last line, which a killed process left behind.

    Raises:
        OperationalError: the file cannot be opened or a line cannot be written (full disk).
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            self._descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_APPEND, 0o644)
            self._drop_torn_tail()
        except OSError as error:
            raise OperationalError(f"cannot write {path}: {error.strerror}.") from error

    def _drop_torn_tail(self) -> None:
        size = os.fstat(self._descriptor).st_size
        end = size
        while end > 0:
            start = max(0, end - 65536)
            newline = os.pread(self._descriptor, end - start, start).rfind(b"\n")
            if newline >= 0:
                end = start + newline + 1
                break
            end = start
        if end < size:
            os.ftruncate(self._descriptor, end)

    def append(self, line: str) -> None:
        """Write `line` and a line break; all of it or, when the disk is full, nothing."""
        data = line.encode() + b"\n"
        size = os.fstat(self._descriptor).st_size
        try:
            written = os.write(self._descriptor, data)
            if written != len(data):
                raise OSError(28, "No space left on device")
        except OSError as error:
            # A device has no size to restore; readers leave out a torn line anyway.
            with contextlib.suppress(OSError):
                os.ftruncate(self._descriptor, size)
            raise OperationalError(
                f"cannot write {self.path}: {error.strerror}. What was written before is intact; "
                "make room and start again to go on."
            ) from error

    def close(self) -> None:
        """Close the file; further appends fail."""
        os.close(self._descriptor)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()
