"""Turns of a chat, built from its messages, with the passages found in them.

Turns of what was said in a chat: messages of users, assistants, tools and the system.
A turn is a message of the user and the reply to it. What else was said becomes part of a turn:

- user messages that follow each other are one, and so are messages of the assistant: joined by a blank line;
- what a tool gave is evidence of the reply that comes after it: a passage;
- system messages, calls of tools, and a greeting before the user's first message are steps of the next turn;
  what stands behind the last reply belongs to that one;
- a last message of the user without a reply is left out.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from hallulab.scenarios.chats.evidence import FoundEvidence, build_passages, extract_evidence
from hallulab.scenarios.chats.values import FormatError
from hallulab.scenarios.transcript import Step, Turn

Role = Literal["system", "user", "assistant", "call", "tool"]

ROLES: dict[str, Role] = {
    "system": "system",
    "developer": "system",
    "user": "user",
    "human": "user",
    "prompter": "user",
    "customer": "user",
    "client": "user",
    "visitor": "user",
    "question": "user",
    "assistant": "assistant",
    "gpt": "assistant",
    "bot": "assistant",
    "chatgpt": "assistant",
    "model": "assistant",
    "ai": "assistant",
    "agent": "assistant",
    "chatbot": "assistant",
    "bing": "assistant",
    "bard": "assistant",
    "gpt-3.5": "assistant",
    "gpt4": "assistant",
    "gpt-4": "assistant",
    "claude": "assistant",
    "gemini": "assistant",
    "answer": "assistant",
    "function_call": "call",
    "tool": "tool",
    "function": "tool",
    "observation": "tool",
}
"""What formats call those who speak."""

_KNOWN = "`user`, `assistant`, `system` or `tool`"
_JOINT = "\n\n"
_STEPS: dict[Role, str] = {"system": "system", "call": "tool_call"}
GREETING = "greeting"
"""Step with what the assistant said before the user's first message."""
SYSTEM = _STEPS["system"]
TOPIC = "topic"
"""Step with the topic that a file gives for a turn."""


@dataclass(frozen=True)
class ChatMessageRecord:
    """A message of a chat."""

    role: Role
    """Who speaks."""
    text: str
    """The message; empty: nothing but what stands below."""
    evidence: tuple[FoundEvidence, ...] = ()
    """What the assistant was given for it; of a tool, what it gave."""


@dataclass
class _Open:
    """A turn that is not over."""

    asked: list[str] = field(default_factory=list)
    replied: list[str] = field(default_factory=list)
    steps: list[Step] = field(default_factory=list)
    evidence: list[FoundEvidence] = field(default_factory=list)

    def take_in(self, later: _Open) -> None:
        """Add what was said behind a reply, and empty it."""
        self.steps += later.steps
        self.evidence += later.evidence
        later.steps, later.evidence = [], []


def build_turns(chat: Iterable[ChatMessageRecord]) -> tuple[Turn, ...]:
    """Put messages together to turns."""
    done: list[_Open] = []
    now, later = _Open(), _Open()
    for said in chat:
        if said.role == "user":
            if now.replied:
                done.append(now)
                now, later = later, _Open()
            now.asked.append(said.text)
        elif said.role == "assistant":
            now.take_in(later)
            if now.asked:
                now.replied.append(said.text)
            elif said.text:
                now.steps.append(Step(name=GREETING, text=said.text))
        beside = later if now.replied and said.role != "assistant" else now
        if said.role in _STEPS:
            beside.steps.append(Step(name=_STEPS[said.role], text=said.text))
        beside.evidence += said.evidence
    now.take_in(later)
    if now.replied:
        done.append(now)
    return tuple(
        Turn(
            index=index,
            user=_JOINT.join(turn.asked),
            passages=build_passages(turn.evidence),
            reply=_JOINT.join(filter(None, turn.replied)),
            steps=tuple(turn.steps),
        )
        for index, turn in enumerate(done)
    )


def read_chat_message(
    message: Any, where: str, keys: tuple[str, str] = ("role", "content")
) -> list[ChatMessageRecord]:
    """Return what a message says, with the calls of tools that it makes.

    Args:
        message: an object with a role and a content, a text or a list of parts.
        where: its place in the value, for errors.
        keys: the keys of role and content.

    Raises:
        FormatError: it has no known role or no text, or a part that no detector reads, such as an image.
    """
    if not isinstance(message, Mapping):
        raise FormatError(
            f"{where}: a message must be an object with `{keys[0]}` and `{keys[1]}`. Correct it."
        )
    message, keys = _unwrap_message(message, keys)
    role = _read_role(message.get(keys[0]), f"{where}.{keys[0]}")
    text = read_content(message.get(keys[1]), f"{where}.{keys[1]}")
    if text is None and isinstance(message.get("refusal"), str):
        text = message["refusal"]
    beside = [
        *(ChatMessageRecord("call", call) for call in _extract_calls(message)),
        *_read_tool_parts(message.get(keys[1])),
    ]
    # A message that only calls a tool, or only has what one gave, is no reply and no question.
    if text is None and beside:
        return beside
    if text is None and role != "assistant":
        raise FormatError(f"{where}.{keys[1]}: is missing or null. Give a text, or delete the message.")
    given = find_evidence(message)
    if role == "tool":
        name = message.get("name")
        given = (*extract_evidence(text, name if isinstance(name, str) and name else "tool"), *given)
    return [*beside, ChatMessageRecord(role, text or "", given)]


def _unwrap_message(
    message: Mapping[str, Any], keys: tuple[str, str]
) -> tuple[Mapping[str, Any], tuple[str, str]]:
    """Return a message of LangChain as others have it: its class or `type` says who speaks.

    Dumps are `{"lc": 1, "id": […, "HumanMessage"], "kwargs": …}`, `{"type": "human", "data": …}`, or flat.
    """
    kwargs, path, data = message.get("kwargs"), message.get("id"), message.get("data")
    if isinstance(kwargs, Mapping) and isinstance(path, list) and path:
        name = str(path[-1]).removesuffix("Chunk").removesuffix("Message").lower()
        return {**kwargs, "role": name}, ("role", "content")
    if isinstance(data, Mapping) and isinstance(message.get("type"), str):
        return {**data, "role": message["type"]}, ("role", "content")
    kind = message.get("type")
    if message.get(keys[0]) is None and isinstance(kind, str) and kind.lower() in ROLES:
        return {**message, "role": kind}, ("role", "content")
    return message, keys


def _read_role(role: Any, where: str) -> Role:
    """Return who speaks.

    Raises:
        FormatError: the role is missing or unknown.
    """
    if role is None:
        raise FormatError(f"{where}: is missing. Give {_KNOWN}.")
    known = ROLES.get(role.strip().lower()) if isinstance(role, str) else None
    if known is None:
        raise FormatError(f"{where}: {_shorten_value(role)} is no known role. Give {_KNOWN}.")
    return known


def read_content(content: Any, where: str) -> str | None:
    """Return the text of a message's content: a text, or parts that are texts; None for null.

    Raises:
        FormatError: it is something else, or a part is no text.
    """
    if content is None:
        return None
    if isinstance(content, str):
        return str(content)
    if not isinstance(content, list):
        raise FormatError(
            f"{where}: must be text or a list of parts, not {_shorten_value(content)}. Correct it."
        )
    texts = [_read_part(part, f"{where}.{number}") for number, part in enumerate(content)]
    found = [text for text in texts if text is not None]
    return "\n".join(found) if found else None


_TEXT_PARTS = ("text", "input_text", "output_text", "refusal", None)
_CALL_PARTS = ("tool_call", "tool_use")
_RESULT_PARTS = ("tool_call_response", "tool_result")
_RESULTS = ("response", "result", "content")
_SILENT_PARTS = (*_CALL_PARTS, *_RESULT_PARTS, "reasoning", "thinking")
"""Parts of messages that are no words of the speaker."""


def _read_part(part: Any, where: str) -> str | None:
    if isinstance(part, str):
        return part
    kind = part.get("type") if isinstance(part, Mapping) else part
    if isinstance(part, Mapping) and kind in _SILENT_PARTS:
        return None
    if not isinstance(part, Mapping) or kind not in _TEXT_PARTS:
        raise FormatError(
            f"{where}: a part of the kind {_shorten_value(kind)} is no text, and no detector reads it. "
            "Put its words there as text, or delete the conversation."
        )
    text = next((part[key] for key in ("text", "content", "refusal") if isinstance(part.get(key), str)), None)
    if not isinstance(text, str):
        raise FormatError(f"{where}: a part has no `text`. Give one, or delete the part.")
    return text


def _read_tool_parts(content: Any) -> Iterator[ChatMessageRecord]:
    """Yield the calls of tools among the parts of a content, and what tools gave."""
    for part in content if isinstance(content, list) else []:
        kind = part.get("type") if isinstance(part, Mapping) else None
        if kind in _CALL_PARTS:
            yield ChatMessageRecord("call", json.dumps(part, ensure_ascii=False))
        elif kind in _RESULT_PARTS:
            gave = next((part[key] for key in _RESULTS if part.get(key) is not None), None)
            yield ChatMessageRecord("tool", "", tuple(extract_evidence(gave, "tool")))


def _extract_calls(message: Mapping[str, Any]) -> list[str]:
    """Return the calls of tools in a message, as JSON."""
    calls = message.get("tool_calls") or []
    legacy = message.get("function_call")
    found = [*(calls if isinstance(calls, list) else [calls]), *([legacy] if legacy else [])]
    return [json.dumps(call, ensure_ascii=False) for call in found]


EVIDENCE = ("context", "contexts", "passages", "documents", "retrieved_contexts", "retrieved_documents")
"""Keys under which files have the evidence of a reply."""


def find_evidence(value: Mapping[str, Any]) -> tuple[FoundEvidence, ...]:
    """Return the evidence under the first known key of a value; nothing where there is none."""
    key = next((key for key in EVIDENCE if value.get(key)), None)
    return () if key is None else tuple(extract_evidence(value[key], key))


def _shorten_value(value: Any) -> str:
    text = json.dumps(value, ensure_ascii=False)
    return text if len(text) <= 40 else f"{text[:39]}…"
