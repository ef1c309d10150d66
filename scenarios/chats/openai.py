"""OpenAI's lines: `{"messages": [{"role": …, "content": …}]}`.

As in the guides to chat completions and to supervised fine-tuning of the API reference of October 2026. Tool
calls, parts and refusals are read.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from hallulab.scenarios.chats.chat_format import (
    ChatFormat,
    FileStart,
    ReadChat,
    encode_json,
    read_objects,
    write_lines,
)
from hallulab.scenarios.chats.messages import build_message_line, collect_messages, read_messages
from hallulab.scenarios.chats.reading import Reading
from hallulab.scenarios.chats.record import Marked
from hallulab.scenarios.transcript import Conversation


def read(path: Path, reading: Reading) -> Iterator[ReadChat]:
    """Yield the conversation of each line."""
    return read_objects(path, reading, read_openai)


def read_openai(value: Mapping[str, Any], name: str) -> Conversation:
    """Make a conversation of a line with `list_messages`.

    Args:
        name: its identifier, if it has none.

    Raises:
        FormatError: something in it is wrong.
    """
    return read_messages(value, "messages", ("role", "content"), name)


def recognize(start: FileStart) -> bool:
    """Return whether the first object has `messages`."""
    return start.value is not None and "messages" in start.value


def write(path: Path, chats: Iterable[Marked], without: frozenset[str]) -> None:
    """Write a line for each conversation."""
    write_lines(path, (encode_json(build_openai_line(marked, without)) for marked in chats))


def build_openai_line(marked: Marked, without: frozenset[str]) -> dict[str, Any]:
    """Return a line with `list_messages`; without all parts it has nothing else."""
    return build_message_line(marked, without, "messages", [
        {"role": role, "content": text} for role, text in collect_messages(marked.conversation)
    ])  # fmt: skip


INFO = ChatFormat(
    name="openai",
    about="lines of OpenAI: messages with role and content",
    endings=(".jsonl", ".json"),
    read=read,
    recognize=recognize,
    write=write,
    for_training=True,
    rank=1,
)
