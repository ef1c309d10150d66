"""Conversations of Intercom's API: `source` is the first message, `conversation_parts` are the others."""

from __future__ import annotations

import html
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from hallulab.scenarios.chats.chat_format import ChatFormat, FileStart, ReadChat, require_object, skip_wrong
from hallulab.scenarios.chats.messages import read_said
from hallulab.scenarios.chats.reading import Reading
from hallulab.scenarios.chats.record import ChatContext, build_conversation
from hallulab.scenarios.chats.turns import build_turns
from hallulab.scenarios.chats.values import list_in, read_json_values
from hallulab.scenarios.transcript import Conversation

_ROLES = {"user": "user", "lead": "user", "contact": "user", "bot": "assistant", "admin": "assistant"}
_INTERNAL = ("note", "note_and_reopen")
_BREAK = re.compile(r"<(?:br|/p|/li|/h[1-6]|/div)\b[^<>]*>", re.IGNORECASE)
_TAG = re.compile(r"<[^<>]*>")


def read(path: Path, reading: Reading) -> Iterator[ReadChat]:
    """Yield each conversation."""
    for place, _, value in read_json_values(path):
        listed = require_object(value).get("conversations")
        for number, one in enumerate(listed if isinstance(listed, list) else [value], start=1):
            where = f"{place}, conversation {number}" if isinstance(listed, list) else place
            with skip_wrong(reading, where):
                found = _read_conversation(require_object(one), f"chat-{number}", reading)
                yield ReadChat(f"{path}, {where}", found)


def _read_conversation(value: Mapping[str, Any], name: str, reading: Reading) -> Conversation:
    beside = value.get("conversation_parts")
    parts = list_in(beside, "conversation_parts") if isinstance(beside, Mapping) else []
    told = [one for one in (value.get("source"), *parts) if isinstance(one, Mapping) and one.get("body")]
    public = [one for one in told if one.get("part_type") not in _INTERNAL]
    for _ in range(len(told) - len(public)):
        reading.count("Internal notes left out")
    messages = [{"role": _find_role(one), "content": _read_body(str(one["body"]))} for one in public]
    said = read_said(messages, "conversation_parts", reading)
    id = value.get("id")
    about = ChatContext(id=str(id) if isinstance(id, str | int) and str(id) else None)
    return build_conversation(build_turns(said), about, name)


def _find_role(part: Mapping[str, Any]) -> Any:
    author = part.get("author")
    kind = author.get("type") if isinstance(author, Mapping) else None
    return _ROLES.get(str(kind), kind)


def _read_body(body: str) -> str:
    """Return the text of a message in HTML."""
    return html.unescape(_TAG.sub("", _BREAK.sub("\n", body))).strip()


def recognize(start: FileStart) -> bool:
    """Return whether the first object is a conversation, or a list of conversations."""
    if start.value is None:
        return False
    return "conversation_parts" in start.value or start.value.get("type") == "conversation.list"


INFO = ChatFormat(
    name="intercom",
    about="conversations of Intercom's API",
    endings=(".json",),
    read=read,
    recognize=recognize,
    rank=0,
)
