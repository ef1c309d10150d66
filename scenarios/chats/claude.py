"""Claude's export, `conversations.json`: `chat_messages` with a `sender`, and the text of attached files."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import Any

from hallulab.scenarios.chats.chat_format import ChatFormat, FileStart, ReadChat, read_objects
from hallulab.scenarios.chats.messages import follow_branch, read_said
from hallulab.scenarios.chats.reading import Reading
from hallulab.scenarios.chats.record import MODEL, ChatContext, build_conversation
from hallulab.scenarios.chats.turns import build_turns
from hallulab.scenarios.chats.values import list_in
from hallulab.scenarios.transcript import Conversation

_PARENT = "parent_message_uuid"


def read(path: Path, reading: Reading) -> Iterator[ReadChat]:
    """Yield each conversation, on the branch that Claude shows."""
    return read_objects(path, reading, partial(_read_export, reading=reading))


def _read_export(value: Mapping[str, Any], name: str, reading: Reading) -> Conversation:
    messages = [one for one in list_in(value, "chat_messages") if isinstance(one, Mapping)]
    if messages and all(isinstance(one.get("uuid"), str) and one.get(_PARENT) for one in messages):
        nodes = {one["uuid"]: one for one in messages}
        shown = value.get("current_leaf_message_uuid")
        messages = [nodes[id] for id in follow_branch(nodes, shown, _PARENT, reading)]
    said = read_said([_convert(one) for one in messages], "chat_messages", reading)
    id, model = value.get("uuid"), value.get("model")
    about = ChatContext(
        id=id if isinstance(id, str) and id else None,
        model=model if isinstance(model, str) and model else MODEL,
    )
    return build_conversation(build_turns(said), about, name)


def _convert(message: Mapping[str, Any]) -> dict[str, Any]:
    """Return a message with role and content, and the text of its files as evidence."""
    attached = [
        {"content": one["extracted_content"], "title": one.get("file_name") or "attachment"}
        for one in list_in(message, "attachments")
        if isinstance(one, Mapping) and one.get("extracted_content")
    ]
    parts = list_in(message, "content") or message.get("text")
    return {"role": message.get("sender"), "content": parts, "documents": attached}


def recognize(start: FileStart) -> bool:
    """Return whether the first object has `chat_messages`."""
    return start.value is not None and isinstance(start.value.get("chat_messages"), list)


INFO = ChatFormat(
    name="claude",
    about="Claude's export, conversations.json",
    endings=(".json",),
    read=read,
    recognize=recognize,
    rank=0,
)
