"""OpenAI's Responses API: `input`, `instructions` and the items of `output`, a response or a request and it.

As in OpenAI's API reference of October 2026. A response that names the one before it
(`previous_response_id`), or a `conversation`, goes on with it.
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
from hallulab.scenarios.chats.messages import build_chat, find_session, list_unread
from hallulab.scenarios.chats.reading import Reading
from hallulab.scenarios.chats.replies import read_items
from hallulab.scenarios.chats.sessions import LoggedChat, join_sessions
from hallulab.scenarios.chats.turns import ChatMessageRecord
from hallulab.scenarios.chats.values import get_text
from hallulab.scenarios.transcript import Conversation

_READ = ("input", "output", "instructions", "previous_response_id", "conversation", "status")


def read(path: Path, reading: Reading) -> Iterator[ReadChat]:
    """Yield the conversations of the responses; those that go on with each other are one."""
    return join_sessions(path, _read_responses(path, reading), reading)


def _read_responses(path: Path, reading: Reading) -> Iterator[LoggedChat]:
    sessions = dict[str, str]()
    for number, (place, line, given) in enumerate(read_values(path, reading), start=1):
        with skip_wrong(reading, place):
            value = _flatten(given)
            one = _read_response(value, f"chat-{number}", reading)
            session, at = find_session(value, reading, *_READ)
            before, id = value.get("previous_response_id"), value.get("id")
            if isinstance(value.get("conversation"), Mapping):
                session = str(value["conversation"].get("id"))
            elif isinstance(before, str) and session is None:
                session = sessions.get(before, before)
            if isinstance(id, str):
                sessions[id] = session or id
            first = session is None and isinstance(id, str)
            yield LoggedChat(place, line, one, id if first else session, at)


def _flatten(value: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return a response with the `input` of its request."""
    request, response = value.get("request"), value.get("response")
    if isinstance(request, Mapping) and isinstance(response, Mapping):
        return {**value, "request": None, **request, **response, "response": None}
    return value


def _read_response(value: Mapping[str, Any], name: str, reading: Reading) -> Conversation:
    asked, instructions = value.get("input"), get_text(value, "instructions")
    said = [ChatMessageRecord("system", instructions)] if instructions else []
    if isinstance(asked, str):
        reading.take("user", "input")
        said.append(ChatMessageRecord("user", asked))
    elif asked is not None:
        said += read_items(asked, "input", reading)
    said += read_items(value.get("output"), "output", reading)
    return build_chat(value, list_unread(value, *_READ), said, name, reading)


INFO = ChatFormat(
    name="responses",
    about="responses of OpenAI's Responses API",
    endings=(".jsonl", ".json"),
    read=read,
    recognize=recognize_object(
        lambda value: (
            "input" in (flat := _flatten(value))
            and isinstance(flat.get("output"), list)
            and all(isinstance(item, Mapping) and "type" in item for item in flat["output"])
        )
    ),
    rank=0,
)
