"""Claude's export, `conversations.json`: `chat_messages` with a `sender`, and the text of attached files."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any

from hallulab.scenarios.chats.chat_format import ChatFormat, read_objects, recognize_object
from hallulab.scenarios.chats.messages import follow_branch, read_said
from hallulab.scenarios.chats.reading import Reading
from hallulab.scenarios.chats.record import MODEL, ChatContext, build_conversation
from hallulab.scenarios.chats.turns import build_turns
from hallulab.scenarios.chats.values import get_text, list_in, list_objects
from hallulab.scenarios.transcript import Conversation

_PARENT = "parent_message_uuid"


def _read_export(value: Mapping[str, Any], name: str, reading: Reading) -> Conversation:
    """Make a conversation of the branch that Claude shows."""
    messages = list_objects(value, "chat_messages")
    if messages and all(isinstance(one.get("uuid"), str) and one.get(_PARENT) for one in messages):
        nodes = {one["uuid"]: one for one in messages}
        shown = value.get("current_leaf_message_uuid")
        messages = [nodes[id] for id in follow_branch(nodes, shown, _PARENT, reading)]
    said = read_said([_convert(one) for one in messages], "chat_messages", reading)
    about = ChatContext(id=get_text(value, "uuid"), model=get_text(value, "model") or MODEL)
    return build_conversation(build_turns(said), about, name)


def _convert(message: Mapping[str, Any]) -> dict[str, Any]:
    """Return a message with role and content, and the text of its files as evidence."""
    attached = [
        {"content": one["extracted_content"], "title": one.get("file_name") or "attachment"}
        for one in list_objects(message, "attachments")
        if one.get("extracted_content")
    ]
    parts = list_in(message, "content") or message.get("text")
    return {"role": message.get("sender"), "content": parts, "documents": attached}


INFO = ChatFormat(
    name="claude",
    about="Claude's export, conversations.json",
    endings=(".json",),
    read=partial(read_objects, convert=_read_export),
    recognize=recognize_object(lambda value: isinstance(value.get("chat_messages"), list)),
    rank=0,
)
