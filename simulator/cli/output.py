"""Standard output; errors of a full disk or a closed pipe are told apart from all other errors."""

from __future__ import annotations

import contextlib
import io
import os
import sys
from collections.abc import Iterator
from typing import Any, TextIO, cast


class OutputError(OSError):
    """Standard output cannot be written."""


class _Output:
    """A text stream that marks its own errors."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)

    def write(self, text: str) -> int:
        """See `TextIO`."""
        with _convert_errors():
            return self._stream.write(text)

    def flush(self) -> None:
        """See `TextIO`."""
        with _convert_errors():
            self._stream.flush()


@contextlib.contextmanager
def _convert_errors() -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise OutputError(error.errno, error.strerror) from error


@contextlib.contextmanager
def guard_output() -> Iterator[None]:
    """Guard standard output: write it to its end, or raise OutputError.

    A character that it cannot show is written as its number: a terminal may lack some of ours, and a path may
    hold bytes that are no text.
    """
    stream = sys.stdout
    if stream is None:  # it is closed, and every print knows that
        yield
        return
    if isinstance(stream, io.TextIOWrapper):
        stream.reconfigure(errors="backslashreplace")
    output = _Output(stream)
    with contextlib.redirect_stdout(cast(TextIO, output)):
        try:
            yield
        finally:
            output.flush()


def forget_unwritten(stream: TextIO | None) -> None:
    """Forget what could not be written. Otherwise the interpreter tries again, and complains, at its end."""
    if stream is None:
        return
    try:
        stream.flush()
    except OSError:
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, stream.fileno())
        os.close(nowhere)
