"""Trackers of Rasa: `events` of a user and a bot, with `sender_id`."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any

from hallulab.scenarios.chats.chat_format import ChatFormat, read_objects, recognize_object
from hallulab.scenarios.chats.messages import build_said
from hallulab.scenarios.chats.reading import Reading
from hallulab.scenarios.chats.values import get_text, list_objects
from hallulab.scenarios.transcript import Conversation

_SPEAKERS = ("user", "bot")
_TAKEN_BACK = {"undo": "bot", "rewind": "user", "restart": "user"}
"""Event → who spoke last, and is forgotten: after a restart, it got no reply."""


def _read_tracker(value: Mapping[str, Any], name: str, reading: Reading) -> Conversation:
    messages = list[dict[str, str]]()
    for event in list_objects(value, "events"):
        kind = event.get("event")
        if kind in _SPEAKERS and isinstance(event.get("text"), str):
            messages.append({"role": kind, "content": event["text"]})
        elif kind in _TAKEN_BACK:
            while messages and messages[-1]["role"] == _TAKEN_BACK[kind]:
                messages.pop()
    return build_said(messages, "events", reading, name, get_text(value, "sender_id"))


INFO = ChatFormat(
    name="rasa",
    about="trackers of Rasa",
    endings=(".json", ".jsonl"),
    read=partial(read_objects, convert=_read_tracker),
    recognize=recognize_object(lambda value: {"sender_id", "events"} <= value.keys()),
    rank=0,
)
