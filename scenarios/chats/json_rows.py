"""Lists of JSON objects that are rows (`rows`): a question and an answer each, or a message each.

Data sets of Ragas and DeepEval, prompts and completions, and logs in names of their own.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from hallulab.scenarios.chats.chat_format import ChatFormat, FileStart, ReadChat, require_object
from hallulab.scenarios.chats.reading import Reading
from hallulab.scenarios.chats.row_kinds import is_header
from hallulab.scenarios.chats.rows import PlacedRow, read_rows
from hallulab.scenarios.chats.values import FormatError, read_json_values

NAME = "json-rows"


def read(path: Path, reading: Reading) -> Iterator[ReadChat]:
    """Yield the conversations of the rows."""
    return read_rows(path, _read_objects(path, reading), reading)


def _read_objects(path: Path, reading: Reading) -> Iterator[PlacedRow]:
    for place, line, value in read_json_values(path, reading.skip):
        try:
            yield PlacedRow(place, line, _lift_messages(require_object(value), reading.mapping))
        except FormatError as error:
            reading.skip(FormatError(str(error), place), place)


def recognize(start: FileStart) -> bool:
    """Return whether the first object has the names of a row."""
    return start.value is not None and is_header(_lift_messages(start.value, start.mapping), start.mapping)


def _lift_messages(value: Mapping[str, Any], mapping: Mapping[str, str]) -> Mapping[str, Any]:
    """Return an object with its messages at the top, where the user gives a path: `values.messages`."""
    path = mapping.get("messages", "")
    head, dot, _ = path.partition(".")
    if not dot or path in value:
        return value
    at: Any = value
    for key in path.split("."):
        at = at.get(key) if isinstance(at, Mapping) else None
    return value if at is None else {**{key: one for key, one in value.items() if key != head}, path: at}


INFO = ChatFormat(
    name=NAME,
    about="objects with a question and an answer each (Ragas, DeepEval, fine-tuning), or a message each",
    endings=(".jsonl", ".json"),
    read=read,
    recognize=recognize,
    rank=20,
)
