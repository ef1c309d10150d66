"""Reference chats, and the summarizer that turns one into the situation of a simulated user.

Source: HalluDetect, section 4.3, B.9 and D.7. Chats between people and a chatbot are summarized, and the
simulated user gets the situation of the chat's user.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Literal

from pydantic import ValidationError

from hallulab.agents.models.errors import UnparseableAnswer
from hallulab.agents.models.model import Session
from hallulab.agents.models.prompt import format_dialogue, load_prompt
from hallulab.scenarios.errors import UsageError
from hallulab.scenarios.files.data_files import read_text
from hallulab.scenarios.files.json_text import parse_json
from hallulab.scenarios.transcript import Message

MAX_TOKENS = 320
"""Limit of a summary, in tokens."""

_LABELS: dict[str, Literal["user", "assistant"]] = {
    "user": "user",
    "human": "user",
    "customer": "user",
    "assistant": "assistant",
    "bot": "assistant",
    "chatbot": "assistant",
    "ai": "assistant",
}
_NO_MESSAGE = 'not of the form {"role": "user" or "assistant", "content": "…"}.'
_LABEL = re.compile(rf"^\s*({'|'.join(_LABELS)})\s*:\s*(.*)$", re.IGNORECASE)


async def summarize(session: Session, chat: Sequence[Message], domain: str) -> str:
    """Summarize the user's side of a reference chat, for a `Persona.summary`.

    Args:
        session: asks the model; the call is recorded as `summary`.
        chat: the reference chat, with at least one user message.
        domain: the assistant's domain, in the words of a prompt.

    Raises:
        ValueError: the chat has no user message.
        UnparseableAnswer: the model wrote nothing.
        ModelError: no answer.
    """
    if not any(message.role == "user" for message in chat):
        raise ValueError("a reference chat without a user message has nothing to summarize")
    request = load_prompt("hallulab.agents.users", "summarizer").fill(
        domain=domain, chat=format_dialogue(chat)
    )
    summary = await session.text("summary", request, max_tokens=MAX_TOKENS)
    if not summary:
        raise UnparseableAnswer("summary: the model wrote an empty summary.")
    return summary


def read_chat(path: Path) -> tuple[Message, ...]:
    """Read a reference chat.

    A `.jsonl` file holds one JSON object `{"role": "user" | "assistant", "content": …}` a line (or `text`
    instead of `content`); a `.json` file holds a list of them. Any other file is plain text. There, a line
    that begins with `User:` or `Assistant:` (also Human, Customer; Bot, Chatbot, AI) opens a message, which
    goes up to the next such line.

    Raises:
        UsageError: the file cannot be read, has another form, or lacks messages of one side.
    """
    text = read_text(path)
    read = {".json": _read_json, ".jsonl": _read_jsonl}.get(path.suffix.lower(), _read_text)
    chat = read(path, text)
    for role in ("user", "assistant"):
        if not any(message.role == role and message.text.strip() for message in chat):
            raise UsageError(
                f"reference chat {path}: no message of the {role}. Begin such lines with "
                f'`{role.capitalize()}:` (in JSON: `"role": "{role}"`).'
            )
    return chat


def _read_json(path: Path, text: str) -> tuple[Message, ...]:
    try:
        entries = parse_json(text)
    except json.JSONDecodeError as error:
        raise UsageError(
            f"reference chat {path}, line {error.lineno}: not valid JSON ({error.msg})."
        ) from error
    except ValueError as error:
        raise UsageError(f"reference chat {path}: not valid JSON ({error}).") from error
    if not isinstance(entries, list):
        raise UsageError(f"reference chat {path}: not a list of messages.")
    return tuple(_read_message(f"{path}, message {number}", entry) for number, entry in enumerate(entries, 1))


def _read_jsonl(path: Path, text: str) -> tuple[Message, ...]:
    chat: list[Message] = []
    for number, line in enumerate(text.split("\n"), start=1):
        if not line.strip():
            continue
        try:
            entry = parse_json(line)
        except ValueError as error:
            raise UsageError(f"reference chat {path}, line {number}: {_NO_MESSAGE}") from error
        chat.append(_read_message(f"{path}, line {number}", entry))
    return tuple(chat)


def _read_message(where: str, entry: Any) -> Message:
    try:
        return Message(role=entry["role"], text=entry["text"] if "text" in entry else entry["content"])
    except (KeyError, TypeError, ValidationError) as error:
        raise UsageError(f"reference chat {where}: {_NO_MESSAGE}") from error


def _read_text(path: Path, text: str) -> tuple[Message, ...]:
    chat: list[Message] = []
    for number, line in enumerate(text.split("\n"), start=1):
        label = _LABEL.match(line)
        if label:
            chat.append(Message(role=_LABELS[label[1].lower()], text=label[2].strip()))
        elif chat:
            last = chat.pop()
            chat.append(Message(role=last.role, text=f"{last.text}\n{line.rstrip()}"))
        elif line.strip():
            raise UsageError(
                f"reference chat {path}, line {number}: the chat does not begin with `User:` or `Assistant:`."
            )
    return tuple(Message(role=message.role, text=message.text.strip()) for message in chat)
