"""What every command promises, whatever it is given, checked on a command that runs in this process.

- It ends with code 0, 1 or 2, and never with an exception of its own.
- One that fails says why in one sentence on standard error, after its warnings. Nothing that it says is
  obeyed by a terminal.
- It is back within `LIMIT_S` seconds of processor time, and does not wait for longer than `HANGS_S`.
- What was there is neither lost nor half-written: see `keeping`.
"""

from __future__ import annotations

import functools
import io
import json
import os
import signal
import sys
import time
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from importlib import import_module
from pathlib import Path
from types import FrameType
from typing import Any
from unittest.mock import patch

from hypothesis import settings

from hallulab.scenarios.text.wording import clean_for_terminal
from hallulab.simulator.cli.main import main
from tests.heavy_libraries import HEAVY
from tests.simulator.command_line import Ended, get_command

TIERS = {"test": 1 / 6, "slow": 1, "soak": 50}
"""Profile of hypothesis → its share of a fuzz test's examples: `make test`, `make test-slow`, `make soak`."""

FEWEST = 6
"""Examples of a fuzz test at least, in any tier: the first two or three drawn hold next to nothing."""

LIMIT_S = 10.0
"""Seconds of processor time that a command may take on a few kilobytes."""

_NOT_FUZZED = {"torch", "transformers", "sentence_transformers", "autogen_ext"}
"""Heavy libraries that no command imports which is checked here."""

HANGS_S = 120.0
"""Seconds on the clock after which a command is ended, on a busy machine, too."""


def examples(number: int) -> settings:
    """Settings of a fuzz test: so many examples in `make test-slow`, more or fewer in the other tiers."""
    tier = TIERS[os.environ.get("HYPOTHESIS_PROFILE", "test")]
    return settings(max_examples=max(FEWEST, round(number * tier)))


class Hangs(BaseException):
    """The time is over. No `Exception`: whoever turns failures into data would go on."""


@functools.cache
def import_what_comes_late() -> None:
    """Import what commands import late: that takes seconds of processor time, which are not a command's."""
    for name in sorted(HEAVY - _NOT_FUZZED):
        import_module(name)


def ended(*arguments: str | Path) -> Ended:
    """Run `hallulab` with these arguments and check what it promises.

    Args:
        arguments: as a shell would pass them.

    Returns:
        What a shell sees. Standard output and error are UTF-8, as in a terminal: half a character on
        standard output is an exception.
    """
    out, err = _utf8("strict"), _utf8("backslashreplace")
    argv = ["hallulab", *map(str, arguments)]
    import_what_comes_late()
    started = time.process_time()
    with (
        patch.multiple(sys, argv=argv, stdout=out, stderr=err),
        patch("typer.main.get_command", get_command),
        _time_limit(),
    ):
        code = _exit_code()
    took = time.process_time() - started
    found = Ended(code, _text(out), _text(err))
    told = f"{' '.join(argv)}\n{found}"
    assert took < LIMIT_S, f"{took:.1f} s: {told}"
    assert found.code in (0, 1, 2), told
    assert "Traceback" not in found.out + found.err, told
    assert clean_for_terminal(found.err) == found.err, told
    assert clean_for_terminal(found.out) == found.out, told
    *warnings, last = found.err.splitlines() or [""]
    if found.code:
        assert last.startswith("error: "), told
        assert all(line.startswith("warning: ") for line in warnings), told
    return found


def _exit_code() -> int:
    handler = signal.getsignal(signal.SIGTERM)
    try:
        main()
    except SystemExit as stopped:
        return int(stopped.code or 0)
    finally:
        signal.signal(signal.SIGTERM, handler)
    raise AssertionError("a command ends by SystemExit")


def _utf8(errors: str) -> io.TextIOWrapper:
    return io.TextIOWrapper(io.BytesIO(), encoding="utf-8", errors=errors, newline="")


def _text(stream: io.TextIOWrapper) -> str:
    stream.flush()
    written: io.BytesIO = stream.buffer  # type: ignore[assignment]
    return written.getvalue().decode()


@contextmanager
def _time_limit() -> Iterator[None]:
    def stop(number: int, frame: FrameType | None) -> None:
        raise Hangs(f"not back after {HANGS_S:g} s")

    before = signal.signal(signal.SIGALRM, stop)
    signal.setitimer(signal.ITIMER_REAL, HANGS_S)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


@contextmanager
def keeping(folder: Path, grows: Collection[str] = (), derived: Collection[str] = ()) -> Iterator[None]:
    """What runs inside loses nothing of `folder`, and leaves nothing half-written in it.

    Args:
        grows: names of JSON-lines files that may get lines; each line that could be read stays.
        derived: names of files that may be replaced by other whole ones.

    All other files stay to the byte. What is new, or was replaced or grew, can be read again: strict JSON
    (no NaN) in UTF-8, and lines that end.
    """
    before = _contents(folder)
    yield
    after = _contents(folder)
    for path, held in before.items():
        assert path in after, f"{path} is gone"
        if after[path] == held:
            continue
        if path.name in grows:
            lost = [line for line in _readable_lines(held) if line not in _readable_lines(after[path])]
            assert not lost, f"{path} has lost {lost}"
        else:
            assert path.name in derived, f"{path} was changed"
    for path, held in after.items():
        if before.get(path) != held:
            check_whole(path)


def check_whole(path: Path) -> None:
    """Assert that a file is no left-over of writing, and that what it holds can be read again."""
    assert not path.name.startswith("."), f"{path} was left behind"
    held = path.read_bytes()
    if path.suffix == ".json":
        _strict(held)
    if path.suffix == ".jsonl":
        assert held == b"" or held.endswith(b"\n"), f"{path} ends in the middle of a line"
        for line in filter(bytes.strip, held.split(b"\n")):
            _strict(line)
    if path.suffix in (".html", ".csv", ".md"):
        held.decode("utf-8")


def _contents(folder: Path) -> dict[Path, bytes]:
    return {path: path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file()}


def _readable_lines(held: bytes) -> list[Any]:
    found = []
    for line in held.split(b"\n"):
        try:
            found.append(_strict(line))
        except (ValueError, RecursionError):
            continue
    return found


def _strict(held: bytes) -> Any:
    """A JSON value as other programs read it: UTF-8, no NaN and no infinity."""

    def refuse(constant: str) -> Any:
        raise ValueError(f"{constant} is no JSON")

    return json.loads(held.decode("utf-8"), parse_constant=refuse)
