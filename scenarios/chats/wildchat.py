"""Lines of WildChat and LMSYS: `conversation` with roles; of UltraChat: `data` with texts in turn.

As in the cards of the data sets `allenai/WildChat-1M`, `lmsys/lmsys-chat-1m` and `stingning/ultrachat`.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any

from hallulab.scenarios.chats.chat_format import ChatFormat, read_objects, recognize_object
from hallulab.scenarios.chats.messages import build_chat, list_unread, read_reply_beside, read_said
from hallulab.scenarios.chats.reading import Reading
from hallulab.scenarios.chats.turns import ChatMessageRecord
from hallulab.scenarios.chats.values import get_first
from hallulab.scenarios.transcript import Conversation

_LISTS = ("conversation", "dialogue", "dialog", "turns", "data")


def _read_line(value: Mapping[str, Any], name: str, reading: Reading) -> Conversation:
    key = _find_list(value) or _LISTS[0]
    listed = value.get(key)
    if _is_in_turn(listed):
        said = [
            ChatMessageRecord("assistant" if number % 2 else "user", text)
            for number, text in enumerate(listed or [])
        ]
        reading.take("user", f"{key} (first, third, …)")
        reading.take("reply", f"{key} (second, fourth, …)")
    else:
        said = read_said(listed, key, reading)
    id = value.get("id") or value.get("conversation_hash") or name
    names = list_unread(value, key, "conversation_hash", "turn")
    said += read_reply_beside(value, names, said, reading)
    return build_chat(value, names, said, str(id), reading)


def _find_list(value: Mapping[str, Any]) -> str | None:
    for key in _LISTS:
        if _is_in_turn(value.get(key)) or {"role", "speaker", "from"} & get_first(value, key).keys():
            return key
    return None


def _is_in_turn(listed: Any) -> bool:
    return isinstance(listed, list) and len(listed) > 1 and all(isinstance(one, str) for one in listed)


INFO = ChatFormat(
    name="wildchat",
    about="lines of WildChat, LMSYS and UltraChat: a conversation, or texts in turn",
    endings=(".jsonl", ".json"),
    read=partial(read_objects, convert=_read_line),
    recognize=recognize_object(lambda value: _find_list(value) is not None),
    rank=13,
)
