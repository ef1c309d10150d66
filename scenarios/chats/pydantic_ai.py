"""Histories of Pydantic AI, `all_messages_json()`: a list of requests and responses with `parts`.

As pydantic-ai 1 writes them. A file is one conversation, or one for each `conversation_id`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from hallulab.scenarios.chats.chat_format import (
    ChatFormat,
    ReadChat,
    read_values,
    recognize_object,
    skip_wrong,
)
from hallulab.scenarios.chats.messages import build_said
from hallulab.scenarios.chats.reading import Reading
from hallulab.scenarios.chats.values import (
    convert_to_text,
    get_first,
    get_text,
    list_objects,
)

_KIND = "part_kind"
_ROLES = {"system-prompt": "system", "user-prompt": "user", "text": "assistant"}
_CALLS = ("tool-call", "builtin-tool-call")
_RESULTS = ("tool-return", "builtin-tool-return")
_FINAL = "final_result"
"""Tool by which an agent gives a reply that has a type."""


def read(path: Path, reading: Reading) -> Iterator[ReadChat]:
    """Yield the conversations of a history, each when all of it is read.

    Raises:
        UsageError: the file cannot be read.
        FormatError: a message is wrong.
    """
    chats, models = dict[str, list[dict[str, Any]]](), dict[str, str]()
    for _, _, value in read_values(path, reading):
        id = get_text(value, "conversation_id") or "chat-1"
        messages = chats.setdefault(id, [])
        parts = list_objects(value, "parts")
        if any(one.get(_KIND) == "retry-prompt" and not one.get("tool_name") for one in parts):
            while messages and messages[-1]["role"] == "assistant":
                messages.pop()
                reading.count("Replies that the agent was told to make again left out")
        messages += _convert(value)
        if model := get_text(value, "model_name"):
            models.setdefault(id, model)
    for id, messages in chats.items():
        with skip_wrong(reading, f"conversation {id}"):
            one = build_said(messages, "messages", reading, id, None, models.get(id))
            yield ReadChat(str(path), one)


def _convert(message: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    """Yield what the parts of a request or a response say."""
    if instructions := get_text(message, "instructions"):
        yield {"role": "system", "content": instructions}
    for part in list_objects(message, "parts"):
        kind, content, tool = part.get(_KIND), part.get("content"), str(part.get("tool_name"))
        if kind in _ROLES:
            yield {"role": _ROLES[kind], "content": content}
        elif kind in _CALLS and tool.startswith(_FINAL):
            yield {"role": "assistant", "content": convert_to_text(part.get("args"))}
        elif kind in _CALLS:
            yield {"role": "assistant", "content": None, "tool_calls": [part]}
        elif kind in _RESULTS and not tool.startswith(_FINAL):
            yield {"role": "tool", "name": tool, "content": convert_to_text(content)}


INFO = ChatFormat(
    name="pydantic-ai",
    about="histories of Pydantic AI",
    endings=(".json", ".jsonl"),
    read=read,
    recognize=recognize_object(lambda value: _KIND in get_first(value, "parts")),
    rank=0,
)
