"""Lists of JSON objects that are rows (`rows`): a question and an answer each, or a message each.

Data sets of Ragas and DeepEval, prompts and completions, and logs in names of their own.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from hallulab.scenarios.chats.chat_format import ChatFormat, FileStart, ReadChat, read_values
from hallulab.scenarios.chats.reading import Reading
from hallulab.scenarios.chats.row_kinds import is_header
from hallulab.scenarios.chats.rows import PlacedRow, read_rows
from hallulab.scenarios.chats.turns import find_role, unwrap_langchain
from hallulab.scenarios.chats.values import convert_to_text

NAME = "json-rows"
_LETTA = ("tool_return", "tool_call", "reasoning")


def read(path: Path, reading: Reading) -> Iterator[ReadChat]:
    """Yield the conversations of the rows."""
    rows = (
        PlacedRow(place, line, _flatten(value, reading.mapping))
        for place, line, value in read_values(path, reading)
    )
    return read_rows(path, rows, reading)


def recognize(start: FileStart) -> bool:
    """Return whether the first object has the names of a row."""
    return start.value is not None and is_header(_flatten(start.value, start.mapping), start.mapping)


def _flatten(value: Mapping[str, Any], mapping: Mapping[str, str]) -> Mapping[str, Any]:
    """Return an object with its messages at the top, where the user gives a path: `values.messages`.

    A message of LangChain or Letta has its words under `content` then.
    """
    if find_role(value) or "message_type" in value:
        value = unwrap_langchain(value)
        gave = next((value[key] for key in _LETTA if key in value), None)
        return {**value, "content": convert_to_text(gave)} if "content" not in value and gave else value
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
