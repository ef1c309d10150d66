"""Standard output and warnings as text that a terminal cannot obey."""

from __future__ import annotations

import contextlib
import io
import json
import logging
import os
import re
import signal
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, TextIO, cast

import typer

from hallulab.scenarios.text.wording import clean_for_terminal

if TYPE_CHECKING:
    from hallulab.simulator.metrics.failures import RunFailures


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


def open_closed_streams() -> None:
    """Open those of the three standard streams that this process was started without, onto nothing.

    Else Python has None for them, and the next file that is opened takes their place: what is printed below
    Python would be written into a journal.
    """
    for number, (name, mode) in enumerate((("stdin", "r"), ("stdout", "w"), ("stderr", "w"))):
        try:
            os.fstat(number)
        except OSError:
            os.open(os.devnull, os.O_RDWR)  # takes the lowest number that is free
        if getattr(sys, name) is None:
            setattr(sys, name, os.fdopen(number, mode, encoding="utf-8", closefd=False))


@contextlib.contextmanager
def guard_output() -> Iterator[None]:
    """Guard standard output: write it to its end, or raise OutputError.

    A character that it cannot show is written as its number: a terminal may lack some of ours, and a path may
    hold bytes that are no text.
    """
    stream = sys.stdout
    if isinstance(stream, io.TextIOWrapper):
        stream.reconfigure(errors="backslashreplace")
    output = _Output(stream)
    with contextlib.redirect_stdout(cast(TextIO, output)):
        try:
            yield
        finally:
            output.flush()


def forget_unwritten(stream: TextIO) -> None:
    """Forget what could not be written. Otherwise the interpreter tries again, and complains, at its end."""
    try:
        stream.flush()
    except OSError:
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, stream.fileno())
        os.close(nowhere)


_DISOBEYED = re.compile(r"[^\n -~]")


def print_lines(text: object, err: bool = False) -> None:
    """Print lines.

    Args:
        text: `str` turns it into lines.
        err: whether to use standard error.
    """
    typer.echo(clean_for_terminal(str(text)), err=err)


def print_warnings(found: RunFailures) -> None:
    """Print on standard error what failed, unless the command ends with an error that says so.

    It is for commands whose standard output is not for people.
    """
    for warning in found.warnings if found.failed is None else ():
        print_lines(f"warning: {warning}", err=True)


def print_json(text: str) -> None:
    """Print JSON, with characters that a terminal would obey spelt as escapes.

    JSON has such characters only in its strings, so the value stays the same.
    """

    def escape(found: re.Match[str]) -> str:
        return found[0] if clean_for_terminal(found[0]) == found[0] else json.dumps(found[0])[1:-1]

    typer.echo(_DISOBEYED.sub(escape, text), nl=False)


def open_in_browser(page: Path) -> None:
    """Open a page in the browser, if the command was typed at a terminal of a machine with a display."""
    has_display = sys.platform == "darwin" or any(
        os.environ.get(name) for name in ("DISPLAY", "WAYLAND_DISPLAY")
    )
    if has_display and sys.stdin.isatty() and sys.stdout.isatty():
        import webbrowser

        webbrowser.open(page.absolute().as_uri())


_OURS = "hallulab"


@contextmanager
def show_warnings() -> Iterator[None]:
    """Print each warning, in one line and once, until the end of the block.

    Tracebacks are left out: the run folder has what failed, with its reason.
    """
    handler = _Lines()
    logger = logging.getLogger(_OURS)
    logger.addHandler(handler)
    try:
        yield
    finally:
        logger.removeHandler(handler)


class _Lines(logging.Handler):
    def __init__(self) -> None:
        super().__init__(logging.WARNING)
        self._said: set[str] = set()

    def emit(self, record: logging.LogRecord) -> None:
        line = clean_for_terminal(f"warning: {' '.join(record.getMessage().split())}")
        if line not in self._said:
            self._said.add(line)
            print(line, file=sys.stderr)


def ask_at_terminal(about: str, lines: Sequence[str]) -> bool:
    """Ask at the terminal whether the user agrees; without one nobody does."""
    if not (sys.stdin and sys.stderr and sys.stdin.isatty() and sys.stderr.isatty()):
        return False
    for line in (about, *(f"  {line}" for line in lines)):
        print_lines(line, err=True)
    print("Do you want that? [y/N] ", end="", file=sys.stderr, flush=True)
    # An event loop that runs takes Ctrl-C for itself, and does not end the wait for a line.
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        return sys.stdin.readline().strip().lower() in ("y", "yes")
    finally:
        signal.signal(signal.SIGINT, before)
