"""JSON and JSON lines: a strict reader of files, a lenient one of answers, a writer of journals, and digests.

Python's own reader accepts numbers and texts with which the program fails much later: a page cannot be
encoded, a sum is no number, a written file cannot be read again. `parse_json` refuses them, because a file
can be corrected by its author. `read_json` repairs them, because a model's answer cannot, and cost a request.
"""

from __future__ import annotations

import contextlib
import errno
import hashlib
import json
import logging
import math
import os
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from hallulab.scenarios.errors import OperationalError, UsageError
from hallulab.scenarios.files.opening import open_descriptor, open_file

MAX_DEPTH = 100
"""Nested lists and objects at most; ours have fewer than ten levels."""

TOO_DEEP = f"more than {MAX_DEPTH} levels of brackets"

Place = tuple[str | int, ...]
"""The keys and positions that lead to a value."""

_MOST_BITS, _MOST_DIGITS = 1023, 308
"""Bits and digits of a whole number that is no larger than any float."""

_LONGEST_NAME = 200
"""Characters that are told of a key, or of the way to a value."""

_SURROGATE = re.compile("[\ud800-\udfff]")
_CONTAINERS = (dict, list)
_STRING = re.compile(r'"[^"\\]*+(?:\\.[^"\\]*+)*+("?)', re.DOTALL)
"""A string; its group is empty if the text ends before the string does."""


def parse_json(text: str) -> Any:
    """Return the value of a JSON text.

    Raises:
        json.JSONDecodeError: it is not JSON.
        ValueError: it is JSON that not every program reads (see `find_unwritable`), or gives a key twice.
    """
    try:
        value = json.loads(text, object_pairs_hook=_refuse_repeated_keys, parse_int=_parse_whole_number)
    except RecursionError as error:
        raise ValueError(TOO_DEEP) from error
    if _is_deep(value):
        raise ValueError(TOO_DEEP)
    try:
        # Passes nearly every text, a hundred times faster than a look at each value.
        json.dumps(value, ensure_ascii=False, allow_nan=False).encode()
    except ValueError:
        found = find_unwritable(value)
        if found is not None:
            place, flaw = found
            where = f"{_shorten_name('.'.join(map(str, place)))}: " if place else ""
            raise ValueError(where + flaw) from None
    return value


def find_unwritable(value: Any, place: Place = ()) -> tuple[Place, str] | None:
    """Return the first place in a JSON value that cannot be written and read again, and why; or None.

    Such are numbers that are not finite or too large for a float, half characters (lone surrogates), and more
    than `MAX_DEPTH` levels.

    Args:
        place: where it is.
    """
    if not isinstance(value, _CONTAINERS):
        flaw = _find_flaw(value)
        return None if flaw is None else (place, flaw)
    if len(place) == MAX_DEPTH:
        return (), TOO_DEEP
    for key, item in value.items() if isinstance(value, dict) else enumerate(value):
        inner = (*place, key)
        flaw = _find_flaw(key)
        found = find_unwritable(item, inner) if flaw is None else (inner, flaw)
        if found is not None:
            return found
    return None


def is_unfinished(text: str) -> bool:
    """Return whether JSON ends inside a string or before a bracket is closed.

    A killed process leaves such lines. Text that is no JSON for another reason is somebody's mistake.
    """
    rest = _STRING.sub(lambda string: "" if string[1] else '"', text)
    return '"' in rest or sum(map(rest.count, "[{")) > sum(map(rest.count, "]}"))


def _parse_whole_number(digits: str) -> int:
    if len(digits) > _MOST_DIGITS:
        raise ValueError(f"a number of {len(digits)} digits is too large")
    return int(digits)


def _refuse_repeated_keys(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Refuse repeated keys. JSON does not define their meaning; Python would silently keep the last one."""
    found = dict(pairs)
    if len(found) < len(pairs):
        twice = Counter(key for key, _ in pairs).most_common(1)[0][0]
        raise ValueError(f"the key {_shorten_name(twice)} occurs twice")
    return found


def _is_deep(value: Any) -> bool:
    level = [value] if isinstance(value, _CONTAINERS) else []
    for _ in range(MAX_DEPTH):
        level = [
            item
            for outer in level
            for item in (outer.values() if isinstance(outer, dict) else outer)
            if isinstance(item, _CONTAINERS)
        ]
        if not level:
            return False
    return True


def _find_flaw(leaf: Any) -> str | None:
    if isinstance(leaf, str):
        half = _SURROGATE.search(leaf)
        return None if half is None else f"half of a character (\\u{ord(half[0]):04x})"
    if isinstance(leaf, float) and not math.isfinite(leaf):
        return "a number that is not finite"
    if isinstance(leaf, int) and leaf.bit_length() > _MOST_BITS:
        return "a number that is too large"
    return None


def _shorten_name(name: str) -> str:
    """A key, or the way to a value, as it is told: keys may be of any length."""
    told = name.encode("utf-8", "backslashreplace").decode()
    return told if len(told) <= _LONGEST_NAME else f"{told[: _LONGEST_NAME - 1]}…"


def replace_surrogates(text: str) -> str:
    """Replace each half character (a lone surrogate), which no file can hold, by U+FFFD."""
    return text if text.isascii() else _SURROGATE.sub("\ufffd", text)


def read_json(text: str | bytes, clean: Callable[[str], str] = replace_surrogates) -> Any:
    """Parse other people's JSON; NaN, infinities and numbers too large for a float become None.

    Args:
        clean: applied to every string and every key.

    Raises:
        ValueError: it is no JSON, or is nested deeper than `MAX_DEPTH`.
    """
    try:
        # `int` raises an error for more than 4,300 digits.
        value = json.loads(
            text, parse_int=lambda digits: int(digits) if len(digits) <= _MOST_DIGITS else math.inf
        )
        return repair_value(value, clean)
    except RecursionError:
        raise ValueError(TOO_DEEP) from None


def repair_value(
    value: Any, clean: Callable[[str], str] = replace_surrogates, levels: int = MAX_DEPTH
) -> Any:
    """Repair a value of a JSON parser, as `read_json` does.

    Raises:
        ValueError: it is nested deeper than `levels`.
    """
    if isinstance(value, str):
        return clean(value)
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, int):
        return value if value.bit_length() <= _MOST_BITS else None
    if not isinstance(value, _CONTAINERS):
        return value
    if levels == 0:
        raise ValueError(TOO_DEEP)
    if isinstance(value, list):
        return [repair_value(item, clean, levels - 1) for item in value]
    return {clean(key): repair_value(item, clean, levels - 1) for key, item in value.items()}


_log = logging.getLogger(__name__)

_BLOCK = 65536


def parse_lines(
    lines: Iterable[bytes], path: Path, skip: Callable[[Exception, str], None] | None = None
) -> Iterator[tuple[int, Any]]:
    """Yield (line number from 1, value) of each line that is not blank.

    Args:
        path: the file, for errors.
        skip: is given the error of each wrong line, and its place, and may raise it; None: it is raised.

    Raises:
        UsageError: a line is not strict JSON (`parse_json`).
    """
    for number, line in enumerate(lines, start=1):
        if line.strip():
            try:
                value = _parse_value(line, number, path)
            except UsageError as error:
                if skip is None:
                    raise
                skip(error, f"line {number}")
                continue
            yield number, value


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
    if path.is_dir():
        raise UsageError(f"{path}: this is a folder. Name a file.")
    if not path.is_file():
        raise UsageError(f"{path}: this is no file. Put the file there, or delete it.")
    with open_file(path) as file:
        place = 0
        for number, line in enumerate(drop_torn_line(file, path), start=1):
            if line.strip():
                yield number, place, _parse_value(line, number, path)
            place += len(line)


def drop_torn_line(file: Iterable[bytes], path: Path) -> Iterator[bytes]:
    """Yield lines without a last one that a killed process left unfinished, of which it warns.

    Args:
        path: where it is, for the warning.
    """
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
    """Return whether a last line without a newline is unfinished: many editors leave only that out."""
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
            self._descriptor = open_descriptor(path, os.O_RDWR | os.O_CREAT | os.O_APPEND, devices=True)
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
                f"cannot write {self.path}: {error.strerror}. Earlier lines are intact; "
                "make room and start again to go on."
            ) from error

    def _write(self, data: bytes) -> None:
        # A disk that fills up takes the first part of a line, and that is no error of the system.
        if os.write(self._descriptor, data) != len(data):
            raise OSError(28, "No space left on device")

    def clear(self) -> None:
        """Remove all lines.

        Raises:
            OperationalError: the file cannot be written.
        """
        try:
            os.ftruncate(self._descriptor, 0)
        except OSError as error:
            raise OperationalError(f"cannot write {self.path}: {error.strerror}.") from error

    def close(self) -> None:
        """Close the file; further appends fail."""
        os.close(self._descriptor)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


def digest(value: Any) -> str:
    """Return the sha256 of a JSON value in canonical form (sorted keys, no white space), 32 hex digits.

    Names of files that are no UTF-8 have half characters, and have a digest, too.
    """
    canonical = json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    return hashlib.sha256(canonical.encode(errors="surrogatepass")).hexdigest()[:32]
