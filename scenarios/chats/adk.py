"""Sessions of Google's Agent Development Kit: `events` with an `author` and a `content` of Gemini.

As `Session` of google-adk 1 writes them, in camel or in snake case.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any

from hallulab.scenarios.chats.chat_format import ChatFormat, read_objects, recognize_object
from hallulab.scenarios.chats.messages import build_said
from hallulab.scenarios.chats.reading import Reading
from hallulab.scenarios.chats.values import get_first, get_object, get_text, list_in, list_objects
from hallulab.scenarios.transcript import Conversation

_USER = "user"


def _read_session(value: Mapping[str, Any], name: str, reading: Reading) -> Conversation:
    """Make a conversation of the events with words, calls and results; of a stream, the whole ones."""
    messages = list[dict[str, Any]]()
    for event in list_objects(value, "events"):
        author, parts = str(event.get("author")), list_in(get_object(event, "content"), "parts")
        if not parts or event.get("partial") is True:
            continue
        role = _USER if author == _USER else "assistant"
        messages.append({"role": role, "name": author, "content": parts})
    return build_said(messages, "events", reading, name, get_text(value, "id"))


INFO = ChatFormat(
    name="adk",
    about="sessions of Google's Agent Development Kit",
    endings=(".json", ".jsonl"),
    read=partial(read_objects, convert=_read_session),
    # The first event may have nothing but a change of the state.
    recognize=recognize_object(
        lambda value: (
            "author" in (first := get_first(value, "events"))
            and ("parts" in get_object(first, "content") or bool({"appName", "app_name"} & value.keys()))
        )
    ),
    rank=0,
)
