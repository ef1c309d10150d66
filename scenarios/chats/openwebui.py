"""Open WebUI's export: a tree of messages under `chat.history`, and the passages of a reply in `sources`."""

from __future__ import annotations

import html
import re
from collections.abc import Mapping
from functools import partial
from itertools import zip_longest
from typing import Any

from hallulab.scenarios.chats.chat_format import ChatFormat, read_objects, recognize_object
from hallulab.scenarios.chats.conventions import unpack_text
from hallulab.scenarios.chats.messages import build_said, follow_branch
from hallulab.scenarios.chats.reading import Reading
from hallulab.scenarios.chats.values import (
    FormatError,
    convert_to_text,
    get_object,
    get_text,
    list_in,
    list_objects,
)
from hallulab.scenarios.transcript import Conversation

# It ends before the next one begins: texts of many beginnings without an end take no longer.
_TOOL = re.compile(
    r'<details type="(?:tool_calls|code_interpreter)"([^<>]*)>(?:(?!</?details).)*</details>\s*', re.DOTALL
)
"""A call of a tool, which Open WebUI writes into the reply."""
_ATTRIBUTE = re.compile(r'(\w+)="([^"]*)"')


def _read_export(value: Mapping[str, Any], name: str, reading: Reading) -> Conversation:
    """Make a conversation of the branch that Open WebUI shows."""
    chat = value.get("chat")
    if not isinstance(chat, Mapping):
        raise FormatError("chat: must be an object with the messages. Export the chats again.")
    history = get_object(chat, "history")
    if nodes := get_object(history, "messages"):
        nodes = {id: one for id, one in nodes.items() if isinstance(one, Mapping)}
        path = follow_branch(nodes, history.get("currentId"), "parentId", reading)
        messages = [nodes[id] for id in path]
    else:
        messages = list_objects(chat, "messages")
    models = (get_text(one, "model") for one in messages)
    id = get_text(value if value.get("id") else chat, "id")
    said = [_convert(one) for one in messages]
    return build_said(said, "messages", reading, name, id, next(filter(None, models), None))


def _convert(message: Mapping[str, Any]) -> dict[str, Any]:
    """Return a message with role and content, and its sources as evidence."""
    given = list[dict[str, Any]]()
    for source in list_objects(message, "sources") or list_objects(message, "citations"):
        named = get_object(source, "source").get("name")
        # Its texts, and what is known of each, stand in lists of their own.
        for text, about in zip_longest(list_in(source, "document"), list_in(source, "metadata")):
            if isinstance(text, str):
                own = about.get("name") or about.get("source") if isinstance(about, Mapping) else None
                given.append({"content": text, "title": own or named or "source"})
    content = message.get("content")
    if isinstance(content, str) and message.get("role") == "assistant":
        for about in _TOOL.findall(content):
            tool = {name: html.unescape(one) for name, one in _ATTRIBUTE.findall(about)}
            if gave := unpack_text(tool.get("result") or tool.get("output")):
                given.append({"content": convert_to_text(gave), "title": tool.get("name") or "tool"})
        content = _TOOL.sub("", content)
    return {"role": message.get("role"), "content": content, "documents": given}


INFO = ChatFormat(
    name="openwebui",
    about="Open WebUI's export of chats",
    endings=(".json",),
    read=partial(read_objects, convert=_read_export),
    recognize=recognize_object(
        lambda value: bool({"history", "messages"} & get_object(value, "chat").keys())
    ),
    rank=0,
)
