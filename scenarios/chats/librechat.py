"""LibreChat: its exported conversations, flat or with `children`, and the list of messages of its API."""

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
from hallulab.scenarios.chats.messages import build_said, follow_branch
from hallulab.scenarios.chats.reading import Reading, place_in
from hallulab.scenarios.chats.values import (
    Groups,
    get_first,
    get_object,
    get_text,
    list_objects,
)
from hallulab.scenarios.transcript import Conversation

_PARENT, _CHILDREN, _SPEAKER = "parentMessageId", "children", "isCreatedByUser"


def read(path: Path, reading: Reading) -> Iterator[ReadChat]:
    """Yield each exported conversation, and those of messages that stand alone."""
    with Groups() as groups:
        for number, (place, line, value) in enumerate(read_values(path, reading), start=1):
            with skip_wrong(reading, place):
                if _SPEAKER in value:
                    groups.add(str(value.get("conversationId") or "chat-1"), 0.0, line, value)
                    continue
                id = get_text(value, "conversationId") or f"chat-{number}"
                model = get_text(value.get("options"), "model")
                one = _read_conversation(list_objects(value, "messages"), id, model, reading)
                yield ReadChat(place_in(path, place), one)
        for id, parts in groups:
            place = f"line {parts[0].line}"
            with skip_wrong(reading, place):
                one = _read_conversation([part.value for part in parts], id, None, reading)
                yield ReadChat(place_in(path, place), one)


def _read_conversation(
    messages: list[Mapping[str, Any]], id: str, model: str | None, reading: Reading
) -> Conversation:
    """Make a conversation of the branch with the last message."""
    nodes = {str(one.get("messageId") or number): one for number, one in enumerate(_flatten(messages))}
    path = follow_branch(nodes, None, _PARENT, reading)
    said = [_convert(nodes[key]) for key in path]
    models = (get_text(nodes[key], "model") for key in path)
    return build_said(said, "messages", reading, id, None, model or next(filter(None, models), None))


def _flatten(messages: list[Mapping[str, Any]]) -> Iterator[Mapping[str, Any]]:
    """Yield messages and those below them; no level is deeper than JSON may be."""
    waiting = list(reversed(messages))
    while waiting:
        one = waiting.pop()
        yield one
        below = list_objects(one, _CHILDREN)
        waiting += [{_PARENT: one.get("messageId"), **answer} for answer in reversed(below)]


def _convert(message: Mapping[str, Any]) -> dict[str, Any]:
    """Return a message with role and content; an agent's has its parts in place of a text."""
    parts = [
        {"type": "tool_call", "name": call.get("name"), "result": call.get("output")}
        if (call := get_object(part, "tool_call"))
        else part
        for part in list_objects(message, "content")
    ]
    role = "user" if message.get(_SPEAKER) is True else "assistant"
    return {"role": role, "content": parts or message.get("text") or ""}


INFO = ChatFormat(
    name="librechat",
    about="LibreChat's exports",
    endings=(".json",),
    read=read,
    recognize=recognize_object(
        lambda value: {_SPEAKER, "messageId"} <= (get_first(value, "messages") or value).keys()
    ),
    rank=0,
)
