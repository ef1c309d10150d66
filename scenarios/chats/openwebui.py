"""Open WebUI's export: a tree of messages under `chat.history`, and the passages of a reply in `sources`."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import partial
from itertools import zip_longest
from pathlib import Path
from typing import Any

from hallulab.scenarios.chats.chat_format import ChatFormat, FileStart, ReadChat, read_objects
from hallulab.scenarios.chats.messages import follow_branch, read_said
from hallulab.scenarios.chats.reading import Reading
from hallulab.scenarios.chats.record import MODEL, ChatContext, build_conversation
from hallulab.scenarios.chats.turns import build_turns
from hallulab.scenarios.chats.values import FormatError, list_in
from hallulab.scenarios.transcript import Conversation


def read(path: Path, reading: Reading) -> Iterator[ReadChat]:
    """Yield each chat, on the branch that Open WebUI shows."""
    return read_objects(path, reading, partial(_read_export, reading=reading))


def _read_export(value: Mapping[str, Any], name: str, reading: Reading) -> Conversation:
    chat = value.get("chat")
    if not isinstance(chat, Mapping):
        raise FormatError("chat: must be an object with the messages. Export the chats anew.")
    history = chat.get("history")
    history = history if isinstance(history, Mapping) else {}
    nodes = history.get("messages")
    if isinstance(nodes, Mapping) and nodes:
        nodes = {id: one for id, one in nodes.items() if isinstance(one, Mapping)}
        path = follow_branch(nodes, history.get("currentId"), "parentId", reading)
        messages = [nodes[id] for id in path]
    else:
        messages = [one for one in list_in(chat, "messages") if isinstance(one, Mapping)]
    said = read_said([_convert(one) for one in messages], "messages", reading)
    id = value.get("id") or chat.get("id")
    models = (one["model"] for one in messages if isinstance(one.get("model"), str) and one["model"])
    about = ChatContext(id=id if isinstance(id, str) and id else None, model=next(models, MODEL))
    return build_conversation(build_turns(said), about, name)


def _convert(message: Mapping[str, Any]) -> dict[str, Any]:
    """Return a message with role and content, and its sources as evidence."""
    sources = list_in(message, "sources") or list_in(message, "citations")
    given = [piece for one in sources if isinstance(one, Mapping) for piece in _read_source(one)]
    return {"role": message.get("role"), "content": message.get("content"), "documents": given}


def _read_source(value: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    """Yield the passages of a source, which has its texts and what is known of each in lists of their own."""
    source = value.get("source")
    named = source.get("name") if isinstance(source, Mapping) else None
    for text, about in zip_longest(list_in(value, "document"), list_in(value, "metadata")):
        if isinstance(text, str):
            own = about.get("name") or about.get("source") if isinstance(about, Mapping) else None
            yield {"content": text, "title": own or named or "source"}


def recognize(start: FileStart) -> bool:
    """Return whether the first object has a `chat` with messages."""
    chat = None if start.value is None else start.value.get("chat")
    return isinstance(chat, Mapping) and ("history" in chat or "messages" in chat)


INFO = ChatFormat(
    name="openwebui",
    about="Open WebUI's export of chats",
    endings=(".json",),
    read=read,
    recognize=recognize,
    rank=0,
)
