"""Results of tau2-bench: `simulations` with the messages of an agent, a simulated user and tools.

Outputs of the agent's tools are evidence, those of the user's own tools, such as a look at a phone, are not.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import partial
from typing import Any

from hallulab.scenarios.chats.chat_format import (
    ChatFormat,
    read_objects,
    recognize_object,
    require_object,
)
from hallulab.scenarios.chats.messages import build_said
from hallulab.scenarios.chats.reading import Reading
from hallulab.scenarios.chats.values import get_object, get_text, list_in
from hallulab.scenarios.transcript import Conversation


def _list_simulations(value: Mapping[str, Any]) -> list[Any]:
    """Return the simulations, each with the model of the agent."""
    model = get_text(get_object(get_object(value, "info"), "agent_info"), "llm")
    return [{**require_object(one), "model": model} for one in list_in(value, "simulations")]


def _read_simulation(value: Mapping[str, Any], name: str, reading: Reading) -> Conversation:
    said = list(_list_messages(value.get("messages"), reading))
    return build_said(said, "messages", reading, name, get_text(value, "id"), value["model"])


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
    read=partial(read_objects, convert=_read_simulation, split=_list_simulations),
    recognize=recognize_object(lambda value: isinstance(value.get("simulations"), list)),
    rank=0,
)
