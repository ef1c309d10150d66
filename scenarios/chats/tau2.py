"""Results of tau2-bench: `simulations` with the messages of an agent, a simulated user and tools.

Outputs of the agent's tools are evidence, those of the user's own tools, such as a look at a phone, are not.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from hallulab.scenarios.chats.chat_format import (
    ChatFormat,
    ReadChat,
    recognize_object,
    require_object,
    skip_wrong,
)
from hallulab.scenarios.chats.messages import build_said
from hallulab.scenarios.chats.reading import Reading
from hallulab.scenarios.chats.values import get_object, get_text, list_in, read_json_values


def read(path: Path, reading: Reading) -> Iterator[ReadChat]:
    """Yield the conversation of each simulation."""
    for place, _, file in read_json_values(path):
        results = require_object(file)
        model = get_text(get_object(get_object(results, "info"), "agent_info"), "llm")
        for number, simulation in enumerate(list_in(results, "simulations"), start=1):
            where = f"{place}, simulation {number}"
            with skip_wrong(reading, where):
                value = require_object(simulation)
                said, name = list(_list_messages(value.get("messages"), reading)), f"simulation-{number}"
                one = build_said(said, "messages", reading, name, get_text(value, "id"), model)
                yield ReadChat(f"{path}, {where}", one)


def _list_messages(messages: Any, reading: Reading) -> Iterator[Any]:
    """Yield the messages between agent and user, and what the agent's tools gave."""
    for message in messages if isinstance(messages, list) else []:
        told = message.get("tool_messages") if isinstance(message, Mapping) else None
        for one in told if isinstance(told, list) else [message]:
            if isinstance(one, Mapping) and one.get("role") == "tool" and one.get("requestor") == "user":
                reading.count("Results of the user's own tools left out")
            elif not (isinstance(one, Mapping) and one.get("role") == "user" and one.get("tool_calls")):
                yield one


INFO = ChatFormat(
    name="tau2",
    about="results of tau2-bench",
    endings=(".json",),
    read=read,
    recognize=recognize_object(lambda value: isinstance(value.get("simulations"), list)),
    rank=0,
)
