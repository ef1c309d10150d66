"""Results of AutoGen's agents and teams, saved as JSON: `messages` with a `source` and a `type`.

As `TaskResult` of autogen-agentchat 0.7 writes them.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import partial
from typing import Any

from hallulab.scenarios.chats.chat_format import ChatFormat, read_objects, recognize_object
from hallulab.scenarios.chats.messages import build_said
from hallulab.scenarios.chats.reading import Reading
from hallulab.scenarios.chats.turns import find_role
from hallulab.scenarios.chats.values import convert_to_text, get_first, get_text, list_objects
from hallulab.scenarios.transcript import Conversation

_WORDS = ("TextMessage", "MultiModalMessage", "ToolCallSummaryMessage", "StructuredMessage")


def _read_result(value: Mapping[str, Any], name: str, reading: Reading) -> Conversation:
    """Make a conversation of what agents said; their thoughts, and what ends them, are no words."""
    messages = [one for message in list_objects(value, "messages") for one in _convert(message)]
    return build_said(messages, "messages", reading, name, get_text(value, "id"))


def _convert(message: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    """Yield a message with role and content, and each result of a tool."""
    kind, content, source = message.get("type"), message.get("content"), str(message.get("source"))
    if kind in _WORDS:
        role = "user" if find_role({"role": source}) == "user" else "assistant"
        told = convert_to_text(content) if isinstance(content, Mapping) else content
        yield {"role": role, "name": source, "content": told}
    elif kind == "ToolCallRequestEvent":
        yield {"role": "assistant", "name": source, "content": None, "tool_calls": content}
    elif kind == "ToolCallExecutionEvent":
        for gave in list_objects(message, "content"):
            yield {"role": "tool", "name": gave.get("name"), "content": gave.get("content")}
    elif kind == "MemoryQueryEvent" and content:
        yield {"role": "tool", "name": "memory", "content": content}


INFO = ChatFormat(
    name="autogen",
    about="results of AutoGen's agents and teams",
    endings=(".json", ".jsonl"),
    read=partial(read_objects, convert=_read_result),
    recognize=recognize_object(
        lambda value: (
            "source" in (first := get_first(value, "messages"))
            and (get_text(first, "type") or "").endswith(("Message", "Event"))
        )
    ),
    rank=0,
)
