"""Claude's export, `conversations.json`: `chat_messages` with a `sender`, and the text of attached files."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any

from hallulab.scenarios.chats.chat_format import ChatFormat, read_objects, recognize_object
from hallulab.scenarios.chats.messages import build_said, follow_branch
from hallulab.scenarios.chats.reading import Reading
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
    said = [
        {
            "role": one.get("sender"),
            "content": list_in(one, "content") or one.get("text"),
            "documents": [
                {"content": file["extracted_content"], "title": file.get("file_name") or "attachment"}
                for file in list_objects(one, "attachments")
                if file.get("extracted_content")
            ],
        }
        for one in messages
    ]
    id, model = get_text(value, "uuid"), get_text(value, "model")
    return build_said(said, "chat_messages", reading, name, id, model)


INFO = ChatFormat(
    name="claude",
    about="Claude's export, conversations.json",
    endings=(".json",),
    read=partial(read_objects, convert=_read_export),
    recognize=recognize_object(lambda value: isinstance(value.get("chat_messages"), list)),
    rank=0,
)
