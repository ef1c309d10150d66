"""Exports of ChatGPT and DeepSeek: trees of messages, of which `current_node` is the last one shown."""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import partial
from typing import Any

from hallulab.scenarios.chats.chat_format import ChatFormat, read_objects, recognize_object
from hallulab.scenarios.chats.messages import build_said, follow_branch
from hallulab.scenarios.chats.reading import Reading
from hallulab.scenarios.chats.values import FormatError, get_object, get_text, list_objects
from hallulab.scenarios.transcript import Conversation

_SILENT = ("thoughts", "reasoning_recap", "user_editable_context", "model_editable_context", "system_error")
_TEXT = ("text", "result")
_FRAGMENTS = {"REQUEST": "user", "RESPONSE": "assistant"}
_CITED = re.compile(" ?\ue200[^\ue200\ue201]*\ue201")
"""A mark of ChatGPT's for a source or a picture, which its pages show as a link."""


def _read_export(value: Mapping[str, Any], name: str, reading: Reading) -> Conversation:
    """Make a conversation of the branch that ChatGPT shows."""
    tree = value.get("mapping")
    if not isinstance(tree, Mapping):
        raise FormatError("mapping: must be an object with the messages. Export the chats again.")
    nodes = {id: node for id, node in tree.items() if isinstance(node, Mapping)}
    path = follow_branch(nodes, value.get("current_node"), "parent", reading)
    messages = [message for id in path if isinstance(message := nodes[id].get("message"), Mapping)]
    said = [one for message in messages if (one := _convert(message))]
    models = (
        get_text(message.get("metadata"), "model_slug") or get_text(message, "model") for message in messages
    )
    id = get_text(value, "conversation_id" if value.get("conversation_id") else "id")
    return build_said(said, "mapping", reading, name, id, next(filter(None, models), None))


def _convert(message: Mapping[str, Any]) -> dict[str, Any] | None:
    """Return a message with role and content; None: it says nothing to the other side."""
    if message.get("fragments"):  # of DeepSeek; they say who speaks, and thoughts are no words
        known = [one for one in list_objects(message, "fragments") if one.get("type") in _FRAGMENTS]
        told = [text for one in known if (text := get_text(one, "content"))]
        return {"role": _FRAGMENTS[known[0]["type"]], "content": told} if told else None
    author, content = message.get("author"), message.get("content")
    if not isinstance(author, Mapping) or not isinstance(content, Mapping):
        return None
    role, kind = author.get("role"), content.get("content_type")
    parts = content.get("parts")
    listed = parts if isinstance(parts, list) else [content.get(key) for key in _TEXT]
    told = [_convert_part(part) for part in listed if part not in (None, "")]
    hidden = get_object(message, "metadata").get("is_visually_hidden_from_conversation")
    if kind in _SILENT or not told or (hidden and role != "tool"):
        return None
    if role == "assistant" and message.get("recipient") not in (None, "all"):
        return {"role": role, "content": None, "tool_calls": [{"to": message["recipient"], "content": told}]}
    return {"role": role, "content": told, "name": author.get("name")}


def _convert_part(part: Any) -> Any:
    """Return a part with its kind under `type`; a spoken one has its words."""
    if isinstance(part, str):
        return _CITED.sub("", part)
    if not isinstance(part, Mapping):
        return part
    if isinstance(part.get("text"), str):
        return part["text"]
    return {"type": part.get("content_type") or "unknown"}


INFO = ChatFormat(
    name="chatgpt",
    about="exports of ChatGPT and DeepSeek, conversations.json",
    endings=(".json",),
    read=partial(read_objects, convert=_read_export),
    recognize=recognize_object(
        lambda value: any(
            isinstance(node, Mapping) and "message" in node for node in get_object(value, "mapping").values()
        )
    ),
    rank=0,
)
