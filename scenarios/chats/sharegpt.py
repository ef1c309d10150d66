"""ShareGPT's lines: `{"conversations": [{"from": "human", "value": …}], "system": …}`.

With the keys and roles of LLaMA-Factory 0.9 (`data/README.md`) and of axolotl 0.13 (`chat_template` with
`field_messages`).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import partial
from pathlib import Path
from typing import Any

from hallulab.scenarios.chats.chat_format import (
    ChatFormat,
    encode_json,
    read_objects,
    recognize_object,
    write_lines,
)
from hallulab.scenarios.chats.messages import build_message_line, collect_messages, read_messages
from hallulab.scenarios.chats.reading import Reading
from hallulab.scenarios.chats.record import Marked
from hallulab.scenarios.chats.turns import ChatMessageRecord, says_role
from hallulab.scenarios.chats.values import get_first, get_text
from hallulab.scenarios.transcript import Conversation

_ROLES = {"user": "human", "assistant": "gpt"}


def read_sharegpt(value: Mapping[str, Any], name: str, reading: Reading) -> Conversation:
    """Make a conversation of a line with `conversations`, or raise FormatError."""
    system = get_text(value, "system")
    extra = [ChatMessageRecord("system", system)] if system else []
    return read_messages(value, "conversations", name, reading, extra)


def write(path: Path, chats: Iterable[Marked], without: frozenset[str]) -> None:
    """Write a line for each conversation."""
    write_lines(path, (encode_json(build_sharegpt_line(marked, without)) for marked in chats))


def build_sharegpt_line(marked: Marked, without: frozenset[str]) -> dict[str, Any]:
    """Return a line with `conversations`; a system message has its own key."""
    told = collect_messages(marked.conversation)
    system = "".join(text for role, text in told if role == "system")
    said = [{"from": _ROLES[role], "value": text} for role, text in told if role != "system"]
    return {**build_message_line(marked, without, "conversations", said), "system": system}


INFO = ChatFormat(
    name="sharegpt",
    about="lines of ShareGPT, as LLaMA-Factory and axolotl read",
    endings=(".jsonl", ".json"),
    read=partial(read_objects, convert=read_sharegpt),
    # Conversations of other exports have messages in them.
    recognize=recognize_object(
        lambda value: (
            "conversations" in value
            and (not (first := get_first(value, "conversations")) or says_role(first))
        )
    ),
    write=write,
    for_training=True,
    rank=2,
)
