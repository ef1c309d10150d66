"""Transcripts of Microsoft's Bot Framework and of Copilot Studio: lists of activities.

A `.transcript` of the emulator is a list of activities; an answer of Direct Line and the `content` of Copilot
Studio's table ConversationTranscript are objects with `activities`. Roles are `user` and `bot`, which Copilot
Studio writes as 1 and 0 (Bot Framework's activity schema and the page on transcripts, October 2026).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from hallulab.scenarios.chats.chat_format import (
    ChatFormat,
    FileStart,
    ReadChat,
    read_values,
    require_object,
    skip_wrong,
)
from hallulab.scenarios.chats.messages import build_said
from hallulab.scenarios.chats.reading import Reading, place_in
from hallulab.scenarios.chats.values import Groups, get_object, get_text, list_in

_ROLES = {"0": "bot", "1": "user", "skill": "bot"}


def read(path: Path, reading: Reading) -> Iterator[ReadChat]:
    """Yield the conversation of each identifier; activities of an object without one are one conversation."""
    with Groups() as groups:
        for number, (place, line, value) in enumerate(read_values(path, reading), start=1):
            with skip_wrong(reading, place):
                listed = list_in(value, "activities") if "activities" in value else [value]
                name = f"chat-{number}" if "activities" in value else "chat-1"
                for activity in map(require_object, listed):
                    id = get_text(get_object(activity, "conversation"), "id")
                    groups.add(id or name, 0.0, line, {"place": place, "activity": activity})
        for name, parts in groups:
            place = parts[0].value["place"]
            with skip_wrong(reading, place):
                read_all = (_read_activity(part.value["activity"], reading) for part in parts)
                messages = [message for message in read_all if message is not None]
                one = build_said(messages, "activities", reading, name)
                yield ReadChat(place_in(path, place), one)


def _read_activity(activity: Mapping[str, Any], reading: Reading) -> dict[str, Any] | None:
    """Return the message of an activity; None: it is something else, or a card without a text."""
    if activity.get("type") != "message":
        return None
    if not activity.get("text"):
        reading.count("Messages without text left out, such as cards")
        return None
    sender = activity.get("from")
    role = sender.get("role") if isinstance(sender, Mapping) else None
    return {
        "role": _ROLES.get(str(role), role),
        "content": activity["text"],
        "timestamp": activity.get("timestamp"),
    }


def recognize(start: FileStart) -> bool:
    """Return whether the first object is an activity, or has a list of them."""
    value = start.value
    if value is None:
        return False
    # WildChat's `conversation` is a list of messages.
    is_activity = "type" in value and isinstance(value.get("conversation"), Mapping)
    return is_activity or isinstance(value.get("activities"), list)


INFO = ChatFormat(
    name="bot-framework",
    about="transcripts of Microsoft's Bot Framework and Copilot Studio",
    endings=(".json", ".jsonl", ".transcript"),
    read=read,
    recognize=recognize,
    rank=0,
)
