"""The description of a chat format, which each module of a format gives as its constant `INFO`."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import count
from pathlib import Path
from types import MappingProxyType
from typing import Any, NamedTuple

from hallulab.scenarios.chats.reading import Reading
from hallulab.scenarios.chats.record import Marked
from hallulab.scenarios.chats.values import FormatError, NoWordsError, Value, read_json_values
from hallulab.scenarios.transcript import Conversation


class ReadChat(NamedTuple):
    """A conversation, and its place in the file."""

    place: str
    """The file and the line, for errors."""
    conversation: Conversation


class FileStart(NamedTuple):
    """The beginning of a file, by which its format is found out."""

    path: Path
    data: bytes
    """Its first 64 KiB; empty for a folder."""
    value: Mapping[str, Any] | None
    """The first JSON value; None: the file has none, or it is no object."""
    mapping: Mapping[str, str] = MappingProxyType({})
    """Names given by the user: field → its name in the file (`Reading`)."""


@dataclass(frozen=True)
class ChatFormat:
    """A format of chats: how it is read, and for some how it is written.

    An entry point of the group `hallulab.chat_formats` gives one, too.
    """

    name: str
    about: str
    endings: tuple[str, ...]
    """Endings of the files' names; empty: it is a folder."""
    read: Callable[[Path, Reading], Iterator[ReadChat]]
    """Yields the conversations of a file in its order, and notes what it took for what; raises UsageError or
    FormatError."""
    recognize: Callable[[FileStart], bool] | None = None
    """Tells a file of this format by its beginning; None: it must be named."""
    write: Callable[[Path, Iterable[Marked], frozenset[str]], None] | None = None
    """Writes conversations, without some of `record.PARTS`, to a new file or folder; None: it cannot."""
    rank: int = 100
    """The lowest of ours is asked first, because a value may fit several formats."""
    for_training: bool = False
    """True if it is read by trainers, so that an export leaves out near duplicates unless told otherwise."""
    has_card: bool = False
    """True if an export adds a data card, `README.md`, to the folder."""


Convert = Callable[[Mapping[str, Any], str, Reading], Conversation]
"""Makes a conversation of an object, and of the name that it has if it names itself not."""


Split = Callable[[Mapping[str, Any]], list[Any]]
"""Gives the objects that an object of a file only wraps."""


def read_values(path: Path, reading: Reading) -> Iterator[Value]:
    """Yield the objects of a file of JSON; what is none is left out, as far as `reading` allows.

    Raises:
        UsageError: the file cannot be read.
        FormatError: a value is no object.
    """
    for one in read_json_values(path, reading.skip):
        with skip_wrong(reading, one.place):
            yield one._replace(value=require_object(one.value))


def read_objects(
    path: Path, reading: Reading, convert: Convert, split: Split | None = None
) -> Iterator[ReadChat]:
    """Yield a conversation of each JSON object of a file, or of each in one.

    Args:
        path: the file.
        reading: says how many wrong objects may be left out.
        convert: makes a conversation of an object.
        split: gives the objects in one of the file; None: it is a conversation itself.

    Raises:
        UsageError: the file cannot be read.
        FormatError: an object is wrong.
    """
    numbers = count(1)
    for place, _, value in read_values(path, reading):
        listed = list[Any]()
        with skip_wrong(reading, place):
            listed = [value] if split is None else split(value)
        for at, (one, number) in enumerate(zip(listed, numbers, strict=False), start=1):
            where = f"{place}, item {at}" if len(listed) > 1 else place
            with skip_wrong(reading, where):
                yield ReadChat(f"{path}, {where}", convert(require_object(one), f"chat-{number}", reading))


def recognize_object(fits: Callable[[Mapping[str, Any]], bool]) -> Callable[[FileStart], bool]:
    """Return what recognizes a file of JSON by its first object; `fits` says if that is of the format."""
    return lambda start: start.value is not None and fits(start.value)


@contextmanager
def skip_wrong(reading: Reading, place: str) -> Iterator[None]:
    """Leave a wrong record out, as far as may be; one with a message without words always, which is told.

    Args:
        reading: says how many wrong records may be left out.
        place: where the record is in the file.

    Raises:
        FormatError: no more may be left out.
    """
    try:
        yield
    except NoWordsError:
        reading.count("Conversations left out, because a message has only parts without words")
    except FormatError as error:
        place = error.place or place
        reading.skip(FormatError(str(error), place), place)


def require_object(value: Any) -> Mapping[str, Any]:
    """Return a value that is an object.

    Raises:
        FormatError: it is something else.
    """
    if not isinstance(value, Mapping):
        raise FormatError("must be an object. Correct or delete it.")
    return value


def write_lines(path: Path, lines: Iterable[str]) -> None:
    """Write lines, each with a line feed, to a new file."""
    with path.open("w", encoding="utf-8", newline="") as file:
        file.writelines(f"{line}\n" for line in lines)


def encode_json(value: Any) -> str:
    """Return a value as one line of JSON."""
    return json.dumps(value, ensure_ascii=False)
