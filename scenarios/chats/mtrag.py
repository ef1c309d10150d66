"""MTRAG's conversations, and its tasks with the predictions of a model (IBM's mt-rag-benchmark).

A task is one reply to be judged: what stands before it was given. Its `targets` are people's replies, and no
model's.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any

from hallulab.scenarios.chats.chat_format import ChatFormat, read_objects, recognize_object
from hallulab.scenarios.chats.messages import build_chat, list_unread, read_said
from hallulab.scenarios.chats.reading import Reading
from hallulab.scenarios.chats.sessions import branch_off
from hallulab.scenarios.chats.values import FormatError, get_first, list_objects
from hallulab.scenarios.transcript import Conversation

_READ = ("messages", "input", "predictions", "targets", "conversation_id", "task_id", "author", "retriever")


def _read_object(value: Mapping[str, Any], name: str, reading: Reading) -> Conversation:
    if "messages" in value:
        said = read_said(value["messages"], "messages", reading)
        return build_chat(value, list_unread(value, *_READ), said, name, reading)
    predicted = [{"speaker": "agent", **one} for one in list_objects(value, "predictions")]
    if not predicted:
        raise FormatError(
            "a task without `predictions`: nothing of a model is in it. Give a file of results."
        )
    said = [
        *read_said(value.get("input"), "input", reading), *read_said(predicted[:1], "predictions", reading)
    ]  # fmt: skip
    task = str(value.get("task_id") or name)
    one = build_chat(value, list_unread(value, *_READ), said, task, reading)
    given = len(one.turns) - 1
    return one if given < 1 else branch_off(one, str(value.get("conversation_id") or task), given)


INFO = ChatFormat(
    name="mtrag",
    about="conversations of MTRAG, and its tasks with predictions",
    endings=(".json", ".jsonl"),
    read=partial(read_objects, convert=_read_object),
    recognize=recognize_object(
        lambda value: "speaker" in get_first(value, "messages" if "messages" in value else "input")
    ),
    rank=0,
)
