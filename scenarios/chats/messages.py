"""Chats as lists of messages, as the lines of OpenAI and ShareGPT have them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from hallulab.scenarios.chats.record import (
    CHATBOT,
    KEY,
    MODEL,
    ChatContext,
    Marked,
    add_topic,
    build_chat_context,
    build_conversation,
    list_messages,
    read_about,
)
from hallulab.scenarios.chats.turns import (
    SYSTEM,
    ChatMessageRecord,
    build_turns,
    find_evidence,
    read_chat_message,
)
from hallulab.scenarios.chats.values import FormatError
from hallulab.scenarios.transcript import Conversation


def build_message_line(
    marked: Marked, without: frozenset[str], key: str, said: list[dict[str, str]]
) -> dict[str, Any]:
    """Return a line with messages under a key; without all parts it has nothing else."""
    if without >= {"passages", "steps", "spans"}:
        return {key: said}
    # A text: readers of tables take the types of columns from the first lines.
    return {key: said, KEY: build_chat_context(marked, without).model_dump_json()}


def collect_messages(conversation: Conversation) -> list[tuple[str, str]]:
    """Return roles and texts of all messages; a system message before the first turn leads."""
    system = [step.text for turn in conversation.turns[:1] for step in turn.steps if step.name == SYSTEM]
    told = [("system", "\n\n".join(system))] if system else []
    return told + [(message.role, message.text) for message in list_messages(conversation)]


def read_messages(value: Mapping[str, Any], key: str, keys: tuple[str, str], name: str) -> Conversation:
    """Make a conversation of a line with messages.

    Args:
        value: the line.
        key: its list of messages.
        keys: of a message, those of its role and its text.
        name: the conversation's identifier, if it has none.

    Raises:
        FormatError: something in it is wrong.
    """
    listed = value.get(key)
    if not isinstance(listed, list):
        raise FormatError(f"{key}: must be a list of messages. Correct it, or delete the line.")
    said = [
        one
        for number, message in enumerate(listed)
        for one in read_chat_message(message, f"{key}.{number}", keys)
    ]
    if key == "conversations" and isinstance(value.get("system"), str) and value["system"]:
        said.insert(0, ChatMessageRecord("system", value["system"]))
    if KEY in value:
        return build_conversation(build_turns(said), read_about(value[KEY]), name)
    # The evidence of a line is that of its last reply: RAG logs have a line for each.
    given = find_evidence(value)
    last = next((place for place in reversed(range(len(said))) if said[place].role == "assistant"), None)
    if last is not None and given:
        said[last] = ChatMessageRecord("assistant", said[last].text, (*said[last].evidence, *given))
    return build_conversation(
        add_topic(build_turns(said), _find_value(value, "topic")), read_chat_context(value), name
    )


def read_chat_context(value: Mapping[str, Any]) -> ChatContext:
    """Return what other tools' lines say of a conversation, perhaps under `metadata`."""
    id = _find_value(value, "id", "conversation_id", "session_id")
    model = _find_value(value, "model")
    chatbot = _find_value(value, "chatbot")
    return ChatContext(
        id=str(id) if id not in (None, "") else None,
        model=str(model) if model not in (None, "") else MODEL,
        chatbot=str(chatbot) if chatbot not in (None, "") else CHATBOT,
    )


def _find_value(value: Mapping[str, Any], *keys: str) -> Any:
    metadata = value.get("metadata")
    places = (value, metadata if isinstance(metadata, Mapping) else {})
    return next((place[key] for key in keys for place in places if place.get(key) is not None), None)
