"""Results of tau2-bench: `simulations` with the messages of an agent, a simulated user and tools.

Outputs of the agent's tools are evidence, those of the user's own tools, such as a look at a phone, are not.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any

from hallulab.scenarios.chats.chat_format import ChatFormat, read_objects, recognize_object
from hallulab.scenarios.chats.messages import build_said
from hallulab.scenarios.chats.reading import Reading
from hallulab.scenarios.chats.values import get_object, get_text, list_in
from hallulab.scenarios.transcript import Conversation


def _list_simulations(value: Mapping[str, Any]) -> list[Any]:
    """Return the simulations, each with the model of the agent."""
    model = get_text(get_object(get_object(value, "info"), "agent_info"), "llm")
    listed = list_in(value, "simulations")
    return [{**one, "model": model} if isinstance(one, Mapping) else one for one in listed]


def _read_simulation(value: Mapping[str, Any], name: str, reading: Reading) -> Conversation:
    """Make a conversation of the messages between agent and user, and of what the agent's tools gave."""
    said = list[Any]()
    for message in list_in(value, "messages"):
        told = message.get("tool_messages") if isinstance(message, Mapping) else None
        for one in told if isinstance(told, list) else [message]:
            if isinstance(one, Mapping) and one.get("role") == "tool" and one.get("requestor") == "user":
                reading.count("Results of the user's own tools left out")
            elif not (isinstance(one, Mapping) and one.get("role") == "user" and one.get("tool_calls")):
                said.append(one)
    return build_said(said, "messages", reading, name, get_text(value, "id"), value["model"])


INFO = ChatFormat(
    name="tau2",
    about="results of tau2-bench",
    endings=(".json",),
    read=partial(read_objects, convert=_read_simulation, split=_list_simulations),
    recognize=recognize_object(lambda value: isinstance(value.get("simulations"), list)),
    rank=0,
)
