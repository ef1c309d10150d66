"""Lists of JSON objects that are rows (`rows`): a question and an answer each, or a message each.

Data sets of Ragas and DeepEval, prompts and completions, and logs in names of their own.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from hallulab.scenarios.chats.chat_format import ChatFormat, FileStart, ReadChat, require_object
from hallulab.scenarios.chats.reading import AmbiguousNameError, Reading
from hallulab.scenarios.chats.rows import PlacedRow, find_kind, read_rows
from hallulab.scenarios.chats.values import FormatError, read_json_values

NAME = "json-rows"


def read(path: Path, reading: Reading) -> Iterator[ReadChat]:
    """Yield the conversations of the rows."""
    return read_rows(path, _read_objects(path, reading), reading)


def _read_objects(path: Path, reading: Reading) -> Iterator[PlacedRow]:
    for place, line, value in read_json_values(path, reading.skip):
        try:
            yield PlacedRow(place, line, require_object(value))
        except FormatError as error:
            reading.skip(FormatError(str(error), place), place)


def recognize(start: FileStart) -> bool:
    """Return whether the first object has the names of a row."""
    if start.value is None:
        return False
    try:
        find_kind(start.value, Reading(start.mapping))
    except AmbiguousNameError:
        return True  # rows of chats, and reading them says what is wrong
    except FormatError:
        return False
    return True


INFO = ChatFormat(
    name=NAME,
    about="objects with a question and an answer each (Ragas, DeepEval, fine-tuning), or a message each",
    endings=(".jsonl", ".json"),
    read=read,
    recognize=recognize,
    rank=20,
)
