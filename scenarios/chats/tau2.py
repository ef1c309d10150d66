"""Results of tau2-bench: `simulations` with the messages of an agent, a simulated user and tools.

Outputs of the agent's tools are evidence, those of the user's own tools, such as a look at a phone, are not.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from hallulab.scenarios.chats.chat_format import ChatFormat, FileStart, ReadChat, require_object, skip_wrong
from hallulab.scenarios.chats.messages import read_said
from hallulab.scenarios.chats.reading import Reading
from hallulab.scenarios.chats.record import MODEL, ChatContext, build_conversation
from hallulab.scenarios.chats.turns import build_turns
from hallulab.scenarios.chats.values import list_in, read_json_values
from hallulab.scenarios.transcript import Conversation


def read(path: Path, reading: Reading) -> Iterator[ReadChat]:
    """Yield the conversation of each simulation."""
    for place, _, value in read_json_values(path):
        results = require_object(value)
        model = _find_model(results)
        for number, simulation in enumerate(list_in(results, "simulations"), start=1):
            where = f"{place}, simulation {number}"
            with skip_wrong(reading, where):
                one = _read_simulation(require_object(simulation), f"simulation-{number}", model, reading)
                yield ReadChat(f"{path}, {where}", one)


def _find_model(results: Mapping[str, Any]) -> str:
    about: Any = results
    for key in ("info", "agent_info", "llm"):
        about = about.get(key) if isinstance(about, Mapping) else None
    return about if isinstance(about, str) and about else MODEL


def _read_simulation(value: Mapping[str, Any], name: str, model: str, reading: Reading) -> Conversation:
    said = read_said(list(_list_messages(value.get("messages"), reading)), "messages", reading)
    id = value.get("id")
    about = ChatContext(id=id if isinstance(id, str) and id else None, model=model)
    return build_conversation(build_turns(said), about, name)


def _list_messages(messages: Any, reading: Reading) -> Iterator[Any]:
    """Yield the messages between agent and user, and what the agent's tools gave."""
    for message in messages if isinstance(messages, list) else []:
        told = message.get("tool_messages") if isinstance(message, Mapping) else None
        for one in told if isinstance(told, list) else [message]:
            if isinstance(one, Mapping) and one.get("role") == "tool" and one.get("requestor") == "user":
                reading.count("Results of the user's own tools left out")
            elif not (isinstance(one, Mapping) and one.get("role") == "user" and one.get("tool_calls")):
                yield one


def recognize(start: FileStart) -> bool:
    """Return whether the first object has `simulations`."""
    return start.value is not None and isinstance(start.value.get("simulations"), list)


INFO = ChatFormat(
    name="tau2",
    about="results of tau2-bench",
    endings=(".json",),
    read=read,
    recognize=recognize,
    rank=0,
)
