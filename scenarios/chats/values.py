"""JSON values of a file read one after the other, and put together on disk where they belong together.

Of a file of any length, one value is in memory at a time.
"""

from __future__ import annotations

import codecs
import gzip
import json
import re
import sqlite3
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from itertools import chain, islice
from pathlib import Path
from types import TracebackType
from typing import Any, BinaryIO, NamedTuple, Self, cast

from hallulab.scenarios.errors import OperationalError, UsageError
from hallulab.scenarios.files.data_files import open_to_read
from hallulab.scenarios.files.json_text import is_unfinished, parse_json, parse_lines

LARGEST = 200_000_000
"""Characters of one value at most."""

MOST_TIMES = 100
"""How many times its size a packed file may unpack to, if that is much."""
_UNSUSPICIOUS = 100_000_000

_LINES = (".jsonl", ".ndjson")
_WRAPPERS = ("data", "items", "rows", "records", "samples", "test_cases", "testCases")
"""Keys of lists that make up a whole file."""
_BLOCK = 1 << 20
_BEHIND = (
    "there is text after the end of the list. Delete it, or the brackets around; if each line is a list of "
    'messages, write it as an object: {"messages": […]}'
)
_MARK = re.compile(r'\\.|["\[\]{},]', re.DOTALL)


class FormatError(ValueError):
    """A wrong value: a sentence with the remedy, without the file.

    Args:
        place: where the value is in the file; None: whoever reads it knows.
    """

    def __init__(self, sentence: str, place: str | None = None) -> None:
        super().__init__(sentence)
        self.place = place


class NoWordsError(FormatError):
    """A message has nothing but parts without words, such as an image."""


def convert_to_text(value: Any) -> str:
    """Return a text as it is, another value as its JSON."""
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def list_in(value: Mapping[str, Any], key: str) -> list[Any]:
    """Return the list under a key; an empty one where the key is missing or null.

    Raises:
        FormatError: something else is there.
    """
    found = value.get(key)
    if found is None:
        return []
    if not isinstance(found, list):
        raise FormatError(f"`{key}` must be a list. Correct it.")
    return found


def get_text(value: Any, key: str) -> str | None:
    """Return the text under a key of an object; None where there is another value, none, or an empty text."""
    found = value.get(key) if isinstance(value, Mapping) else None
    return found if isinstance(found, str) and found else None


def get_object(value: Any, key: str) -> Mapping[str, Any]:
    """Return the object under a key of an object; an empty one where there is another value, or none."""
    found = value.get(key) if isinstance(value, Mapping) else None
    return found if isinstance(found, Mapping) else {}


def get_first(value: Any, key: str) -> Mapping[str, Any]:
    """Return the first member of the list under a key of an object, if it is an object; else an empty one."""
    listed = value.get(key) if isinstance(value, Mapping) else None
    first = listed[0] if isinstance(listed, list) and listed else None
    return first if isinstance(first, Mapping) else {}


def list_objects(value: Mapping[str, Any], key: str) -> list[Mapping[str, Any]]:
    """Return the objects of the list under a key, without its other members.

    Raises:
        FormatError: it is no list.
    """
    return [one for one in list_in(value, key) if isinstance(one, Mapping)]


@contextmanager
def open_chats(path: Path) -> Iterator[BinaryIO]:
    """Open a file of chats to read its bytes, unpacked if it is packed by gzip.

    Raises:
        UsageError: it cannot be read, or unpacks to far more than chats do.
    """
    with open_to_read(path) as file:
        packed = file.read(2) == b"\x1f\x8b"
        file.seek(0)
        if not packed:
            yield file
            return
        try:
            with gzip.GzipFile(fileobj=file) as unpacked:
                # A trap unpacks to far more: chats pack to a tenth, zeros to a thousandth.
                size, most = 0, max(_UNSUSPICIOUS, MOST_TIMES * path.stat().st_size)
                while block := unpacked.read(_BLOCK):
                    size += len(block)
                    if size > most:
                        told = f"{path}: unpacks to more than {most:,} bytes. Unpack it, and see what it is."
                        raise UsageError(told)
                unpacked.seek(0)
                yield cast(BinaryIO, unpacked)
        except (EOFError, zlib.error, gzip.BadGzipFile) as error:
            raise UsageError(f"{path}: is damaged ({error}). Pack it again.") from error


Skip = Callable[[Exception, str], None]
"""Takes a wrong record's error and place, or raises the error (`Reading.skip`)."""


class Value(NamedTuple):
    """A value of a file, and its place there."""

    place: str
    """`line 7`; of an element of a list, also which it is."""
    line: int
    """The line on which it begins, from 1."""
    value: Any


def read_json_values(path: Path, skip: Skip | None = None) -> Iterator[Value]:
    """Yield the values of JSON lines, or the elements of the list that is the file.

    A file with one object, perhaps over many lines, yields it.

    Args:
        path: the file.
        skip: is given the error of each line or element that is no JSON, and its place, and may raise it;
            None: it is raised.

    Raises:
        UsageError: the file cannot be read, or is no strict JSON (`parse_json`); names the line.
    """
    with open_chats(path) as file:
        first = file.read(_BLOCK).removeprefix(codecs.BOM_UTF8).lstrip().partition(b"\n")[0]
    if first.startswith(b"["):
        for number, element in enumerate(_Scan(path).elements(_read_texts(path)), start=1):
            place = f"line {element.line}, item {number}"
            try:
                value = _parse_value(element.text, f"{path}, {place}")
            except UsageError as error:
                if skip is None:
                    raise
                skip(error, place)
                continue
            yield Value(place, element.line, value)
    elif not _has_lines(path) and is_unfinished(first.decode("utf-8", "replace")):
        text = "".join(_read_texts(path)).removeprefix("\ufeff")
        if len(text) > LARGEST:
            raise UsageError(
                f"{path}: has over {LARGEST:,} characters in one object. Give a list of objects."
            )
        yield from _unwrap(_parse_value(text, f"{path}, line 1"))
    else:
        with open_chats(path) as file:
            values = (Value(f"line {number}", number, one) for number, one in parse_lines(file, path, skip))
            head = list(islice(values, 2))
            if len(head) == 1 and not _has_lines(path):
                yield from _unwrap(head[0].value)
            else:
                yield from chain(head, values)


def _has_lines(path: Path) -> bool:
    return path.name.lower().removesuffix(".gz").endswith(_LINES)


def _unwrap(value: Any) -> Iterator[Value]:
    """Yield an object, or the objects of the list that it only wraps, as the answers of many APIs do."""
    lists = {
        key: listed
        for key in _WRAPPERS
        if isinstance(value, Mapping) and isinstance(listed := value.get(key), list) and listed
        and all(isinstance(one, Mapping) for one in listed)
    }  # fmt: skip
    if len(lists) != 1:
        yield Value("line 1", 1, value)
        return
    for key, listed in lists.items():
        for number, one in enumerate(listed, start=1):
            yield Value(f"line 1, {key} {number}", 1, one)


class Element(NamedTuple):
    """An element of a list, as text."""

    line: int
    text: str


def _parse_value(text: str, place: str) -> Any:
    try:
        return parse_json(text)
    except ValueError as error:
        raise UsageError(f"{place}: not valid JSON ({error}). Correct or delete it.") from error


def _read_texts(path: Path) -> Iterator[str]:
    """Yield the text of a file in blocks."""
    decoder = codecs.getincrementaldecoder("utf-8")()
    line = 1
    with open_chats(path) as file:
        file.seek(len(codecs.BOM_UTF8) if file.read(3) == codecs.BOM_UTF8 else 0)
        while True:
            block = file.read(_BLOCK)
            try:
                text = decoder.decode(block, final=not block)
            except UnicodeDecodeError as error:
                line += error.object[: error.start].count(b"\n")
                raise UsageError(
                    f"{path}, line {line}: the text is not UTF-8. Save the file as UTF-8."
                ) from error
            line += text.count("\n")
            if not block:
                return
            yield text


class _Scan:
    """Cuts a list into its elements, block by block."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._depth = 0
        self._in_string = self._ended = False
        self._line = self._begins = 1
        self._parts: list[str] = []
        self._length = 0

    def elements(self, texts: Iterable[str]) -> Iterator[Element]:
        """Yield the elements.

        Raises:
            UsageError: one does not end, or text follows the list.
        """
        held = ""
        for block in texts:
            text = held + block
            # An escape is not cut in two: backslashes at the end of a block wait for the next.
            held = text[len(text.rstrip("\\")) :]
            yield from self._cut(text[: len(text) - len(held)])
        if self._depth or self._in_string:
            raise self._flaw("the list does not end after what begins there. Close its brackets and quotes")
        self._begins = self._line
        if held or "".join(self._parts).strip():
            raise self._flaw(_BEHIND)

    def _cut(self, text: str) -> Iterator[Element]:
        at = 0
        for found in _MARK.finditer(text):
            mark = found[0]
            if mark == '"':
                self._in_string = not self._in_string
            elif self._in_string or mark.startswith("\\"):
                continue
            elif mark in "[{":
                if self._ended and not self._depth:
                    self._add(text[at : found.start()])
                    raise self._flaw(_BEHIND)
                self._depth += 1
                if self._depth == 1:
                    at = found.end()
            elif mark in "]}" or self._depth == 1:
                self._depth -= mark != ","
                self._ended = not self._depth
                if not self._depth or mark == ",":
                    self._add(text[at : found.start()])
                    element = Element(self._begins, "".join(self._parts).rstrip())
                    self._parts, self._length = [], 0
                    if element.text:
                        yield element
                    at = found.end()
        self._add(text[at:])

    def _add(self, text: str) -> None:
        if not self._length:
            kept = text.lstrip()
            self._line += text[: len(text) - len(kept)].count("\n")
            text, self._begins = kept, self._line
        self._line += text.count("\n")
        self._parts.append(text)
        self._length += len(text)
        if self._length > LARGEST:
            raise self._flaw(f"what begins there has over {LARGEST:,} characters. Close its brackets")

    def _flaw(self, what: str) -> UsageError:
        return UsageError(f"{self._path}, line {self._begins}: {what}.")


class GroupedPart(NamedTuple):
    """A part of a group."""

    line: int
    value: Any


@contextmanager
def _explain_database_errors() -> Iterator[None]:
    try:
        yield
    except sqlite3.Error as error:
        raise OperationalError(
            f"the system's folder for temporary files cannot hold what was read ({error}). Free space there, "
            "or set TMPDIR to another folder."
        ) from error


class Groups:
    """Groups of JSON values by name, in a database that the system deletes when it is closed.

    Raises:
        OperationalError: the system's temporary folder is full.
    """

    def __init__(self) -> None:
        # An empty name is a temporary file without a name.
        self._database = sqlite3.connect("")
        with _explain_database_errors():
            self._database.execute("CREATE TABLE part (name TEXT, at REAL, line INTEGER, value TEXT)")

    def add(self, name: str, at: float, line: int, value: Any) -> None:
        """Add a value to a group.

        Args:
            name: the group.
            at: its place in the group's order, before that in the file.
            line: the line of the file on which it begins.
            value: a JSON value.

        Raises:
            OperationalError: the system's temporary folder is full.
        """
        text = json.dumps(value, ensure_ascii=False)
        with _explain_database_errors():
            self._database.execute("INSERT INTO part VALUES (?, ?, ?, ?)", (name, at, line, text))

    def __iter__(self) -> Iterator[tuple[str, list[GroupedPart]]]:
        """Yield each group, in the order in which they begin in the file, with its parts in order.

        Raises:
            OperationalError: the system's temporary folder is full.
        """
        with _explain_database_errors():
            self._database.execute("CREATE INDEX IF NOT EXISTS by_name ON part (name)")
            names = self._database.execute("SELECT name, MIN(rowid) FROM part GROUP BY name ORDER BY 2")
            for name, _ in names:
                parts = self._database.execute(
                    "SELECT line, value FROM part WHERE name = ? ORDER BY at, rowid", (name,)
                )
                yield name, [GroupedPart(line, json.loads(value)) for line, value in parts]

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._database.close()
