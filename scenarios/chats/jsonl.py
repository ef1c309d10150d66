"""Our own lines: those of `conversations.jsonl` (`hallulab.scenarios.transcript.Conversation`).

Exported ones have `spans` and `verdicts`, too.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import partial
from pathlib import Path
from typing import Any

from pydantic import TypeAdapter, ValidationError

from hallulab.scenarios.chats.chat_format import (
    ChatFormat,
    encode_json,
    read_objects,
    recognize_object,
    write_lines,
)
from hallulab.scenarios.chats.reading import Reading
from hallulab.scenarios.chats.record import Marked
from hallulab.scenarios.chats.values import FormatError
from hallulab.scenarios.files.data_files import choose_main_error, explain_error
from hallulab.scenarios.transcript import Conversation, Verdict

_VERDICTS = TypeAdapter(tuple[Verdict, ...])


def read_own(value: Mapping[str, Any], name: str, reading: Reading) -> Conversation:
    """Make a conversation of a line in our own format; it has its identifier."""
    try:
        own = {key: one for key, one in value.items() if key not in {"spans", "verdicts"}}
        conversation = Conversation.model_validate(own)
        verdicts = _VERDICTS.validate_python(value.get("verdicts", ()))
        reading.verdicts.setdefault(conversation.id, verdicts)
        return conversation
    except ValidationError as error:
        first = choose_main_error(error)
        place = ".".join(map(str, first["loc"])) or name
        raise FormatError(f"{place}: {explain_error(first)}. Correct it, or delete the line.") from error


def write(path: Path, chats: Iterable[Marked], without: frozenset[str]) -> None:
    """Write a line for each conversation."""
    write_lines(path, (encode_json(build_own_line(marked, without)) for marked in chats))


def build_own_line(marked: Marked, without: frozenset[str]) -> dict[str, Any]:
    """Return a line in our own format."""
    line = marked.conversation.model_dump(mode="json")
    for part in {"passages", "steps"} & without:
        line["turns"] = [{**turn, part: []} for turn in line["turns"]]
    if "spans" not in without:
        line["spans"] = [
            [mark.model_dump() for mark in marked.marks[turn.index]] if turn.index in marked.marks else None
            for turn in marked.conversation.turns
        ]
        line["verdicts"] = [verdict.model_dump(mode="json") for verdict in marked.verdicts]
    return line


INFO = ChatFormat(
    name="jsonl",
    about="conversations of hallulab",
    endings=(".jsonl",),
    read=partial(read_objects, convert=read_own),
    recognize=recognize_object(lambda value: {"stop_reason", "turns"} <= value.keys()),
    write=write,
    rank=8,
)
