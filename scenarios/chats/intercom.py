"""Conversations of Intercom's API: `source` is the first message, `conversation_parts` are the others."""

from __future__ import annotations

import html
import re
from collections.abc import Mapping
from functools import partial
from typing import Any

from hallulab.scenarios.chats.chat_format import (
    ChatFormat,
    read_objects,
    recognize_object,
)
from hallulab.scenarios.chats.conventions import read_text
from hallulab.scenarios.chats.messages import build_said
from hallulab.scenarios.chats.reading import Reading
from hallulab.scenarios.chats.values import get_object, list_in
from hallulab.scenarios.transcript import Conversation

_ROLES = {"user": "user", "lead": "user", "contact": "user", "bot": "assistant", "admin": "assistant"}
_INTERNAL = ("note", "note_and_reopen")
_BREAK = re.compile(r"<(?:br|/p|/li|/h[1-6]|/div)\b[^<>]*>", re.IGNORECASE)
_TAG = re.compile(r"<[^<>]*>")


def _read_conversation(value: Mapping[str, Any], name: str, reading: Reading) -> Conversation:
    parts = list_in(get_object(value, "conversation_parts"), "conversation_parts")
    told = [one for one in (value.get("source"), *parts) if isinstance(one, Mapping) and one.get("body")]
    public = [one for one in told if one.get("part_type") not in _INTERNAL]
    for _ in range(len(told) - len(public)):
        reading.count("Internal notes left out")
    said = []
    for part in public:
        kind = get_object(part, "author").get("type")
        text = html.unescape(_TAG.sub("", _BREAK.sub("\n", str(part["body"])))).strip()
        said.append({"role": _ROLES.get(str(kind), kind), "content": text})
    return build_said(said, "conversation_parts", reading, name, read_text(value.get("id")))


INFO = ChatFormat(
    name="intercom",
    about="conversations of Intercom's API",
    endings=(".json",),
    read=partial(
        read_objects,
        convert=_read_conversation,
        split=lambda value: list_in(value, "conversations") if "conversations" in value else [value],
    ),
    recognize=recognize_object(
        lambda value: "conversation_parts" in value or value.get("type") == "conversation.list"
    ),
    rank=0,
)
