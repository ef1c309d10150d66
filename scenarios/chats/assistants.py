"""Threads of OpenAI's Assistants API: an object of the kind `thread.message` each, the newest first."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from hallulab.scenarios.chats.chat_format import (
    ChatFormat,
    ReadChat,
    read_values,
    recognize_object,
    skip_wrong,
)
from hallulab.scenarios.chats.messages import build_said
from hallulab.scenarios.chats.reading import Reading, place_in
from hallulab.scenarios.chats.values import Groups, get_first, get_object


def read(path: Path, reading: Reading) -> Iterator[ReadChat]:
    """Yield the conversation of each thread, in the order of `created_at`."""
    reading.take("time", "created_at")
    with Groups() as groups:
        for place, line, message in read_values(path, reading):
            groups.add(str(message.get("thread_id") or "thread-1"), 0.0, line, {"place": place, **message})
        for thread, parts in groups:
            place = parts[0].value["place"]
            with skip_wrong(reading, place):
                one = build_said([part.value for part in parts], "messages", reading, thread)
                yield ReadChat(place_in(path, place), one)


INFO = ChatFormat(
    name="assistants",
    about="messages of threads of OpenAI's Assistants API",
    endings=(".json", ".jsonl"),
    read=read,
    # Its text is an object.
    recognize=recognize_object(
        lambda value: (
            "role" in value
            and (
                value.get("object") == "thread.message"
                or bool(get_object(get_first(value, "content"), "text"))
            )
        )
    ),
    rank=0,
)
