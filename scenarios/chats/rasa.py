"""Trackers of Rasa: `events` of a user and a bot, with `sender_id`."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import Any

from hallulab.scenarios.chats.chat_format import ChatFormat, FileStart, ReadChat, read_objects
from hallulab.scenarios.chats.messages import read_said
from hallulab.scenarios.chats.reading import Reading
from hallulab.scenarios.chats.record import ChatContext, build_conversation
from hallulab.scenarios.chats.turns import build_turns
from hallulab.scenarios.chats.values import list_in
from hallulab.scenarios.transcript import Conversation

_SPEAKERS = ("user", "bot")


def read(path: Path, reading: Reading) -> Iterator[ReadChat]:
    """Yield the conversation of each tracker."""
    return read_objects(path, reading, partial(_read_tracker, reading=reading))


def _read_tracker(value: Mapping[str, Any], name: str, reading: Reading) -> Conversation:
    messages = [
        {"role": event["event"], "content": event["text"]}
        for event in list_in(value, "events")
        if isinstance(event, Mapping)
        and event.get("event") in _SPEAKERS
        and isinstance(event.get("text"), str)
    ]
    sender = value.get("sender_id")
    about = ChatContext(id=sender if isinstance(sender, str) and sender else None)
    return build_conversation(build_turns(read_said(messages, "events", reading)), about, name)


def recognize(start: FileStart) -> bool:
    """Return whether the first object is a tracker."""
    return start.value is not None and {"sender_id", "events"} <= start.value.keys()


INFO = ChatFormat(
    name="rasa",
    about="trackers of Rasa",
    endings=(".json", ".jsonl"),
    read=read,
    recognize=recognize,
    rank=0,
)
