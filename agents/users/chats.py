"""Reference chats: read and summarize them, and read the user's case, goals and manner off them.

The summarizer turns a chat between a person and a chatbot into the situation of a simulated user. The case is
read off the summary, the manner off the user's own messages.
Source: HalluDetect, section 4.3, B.9 and D.7.
"""

from __future__ import annotations

import json
import logging
import re
import string
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import Field

from hallulab.agents.models.answers import UnparseableAnswer
from hallulab.agents.models.prompt import format_dialogue, load_prompt
from hallulab.agents.models.session import Session
from hallulab.agents.users.personas import AGAIN, MANNERS, asked_for, make_goal
from hallulab.scenarios.chats.turns import read_chat_message
from hallulab.scenarios.chats.values import FormatError
from hallulab.scenarios.errors import UsageError
from hallulab.scenarios.files.data_files import read_text
from hallulab.scenarios.files.json_text import parse_json
from hallulab.scenarios.text.items import find_items
from hallulab.scenarios.text.wording import render_one_line, shorten_line
from hallulab.scenarios.text.words import TOKEN, match_any, read_word
from hallulab.scenarios.transcript import Frozen, Message

_log = logging.getLogger(__name__)

MAX_TOKENS = 320

_LABELS: dict[str, Literal["user", "assistant"]] = {
    **dict.fromkeys(("user", "human", "customer", "client", "visitor"), "user"),
    **dict.fromkeys(("assistant", "bot", "chatbot", "ai", "agent", "chatgpt", "gpt"), "assistant"),
}  # fmt: skip
_NO_MESSAGE = 'not of the form {"role": "user" or "assistant", "content": "…"}.'
_OTHER_LABEL = re.compile(r"\s*([A-Z][\w.-]{0,30}(?: [A-Z][\w.-]{0,30})?):\s")
"""Pattern of another speaker's name."""
_MOST_NAMED = 5
_LABEL = re.compile(rf"^\s*({match_any(_LABELS)})\s*:\s*(.*)$", re.IGNORECASE)


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
    instead of `content`); a `.json` file holds a list of them, perhaps under `messages`. Messages of
    others than user and assistant are left out. Any other file is plain text. There, a line that begins with
    `User:` or `Assistant:` (also Human, Customer, Client, Visitor; Bot, Chatbot, AI, Agent, GPT)
    opens a message, which goes up to the next such line.
    A warning names lines that may begin with another speaker.

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
    if isinstance(entries, dict) and "messages" in entries:
        entries = entries["messages"]
    if not isinstance(entries, list):
        raise UsageError(f"reference chat {path}: not a list of messages.")
    return tuple(
        message
        for number, entry in enumerate(entries, 1)
        for message in _read_messages(f"{path}, message {number}", entry)
    )


def _read_jsonl(path: Path, text: str) -> tuple[Message, ...]:
    chat: list[Message] = []
    for number, line in enumerate(text.split("\n"), start=1):
        if not line.strip():
            continue
        try:
            entry = parse_json(line)
        except ValueError as error:
            raise UsageError(f"reference chat {path}, line {number}: {_NO_MESSAGE}") from error
        chat += _read_messages(f"{path}, line {number}", entry)
    return tuple(chat)


def _read_messages(where: str, entry: Any) -> list[Message]:
    """Return what user or assistant say in an entry; nothing where a tool or the system speaks."""
    try:
        said = read_chat_message(entry, "message")
    except FormatError as error:
        raise UsageError(f"reference chat {where}: {error}") from error
    return [
        Message(role=one.role, text=one.text)
        for one in said
        if (one.role == "user" or one.role == "assistant") and one.text
    ]


def _read_text(path: Path, text: str) -> tuple[Message, ...]:
    chat: list[Message] = []
    others = dict[str, None]()
    for number, line in enumerate(text.split("\n"), start=1):
        label = _LABEL.match(line)
        if label:
            chat.append(Message(role=_LABELS[label[1].lower()], text=label[2].strip()))
        elif chat:
            if other := _OTHER_LABEL.match(line):
                others[other[1]] = None
            last = chat.pop()
            chat.append(Message(role=last.role, text=f"{last.text}\n{line.rstrip()}"))
        elif line.strip():
            raise UsageError(
                f"reference chat {path}, line {number}: the chat does not begin with `User:` or `Assistant:`."
            )
    if others:
        named = ", ".join(f"`{name}:`" for name in list(others)[:_MOST_NAMED])
        _log.warning(
            "%s: lines that begin with %s were read as part of the message before. If another speaker begins "
            "there, write `User:` or `Assistant:`.", path, named,
        )  # fmt: skip
    return tuple(Message(role=message.role, text=message.text.strip()) for message in chat)


_CASE_TOKENS = 320

_MESSAGES = 10
"""Messages of a user by which the manner is chosen, at most."""

_NOBODY = frozenset({"user"})
"""Stems that facts have of their own."""

_JOINT = re.compile(r",?\s+and\s+(?=(?:what|how|who|when|where|which|whether|why|if)\b)", re.IGNORECASE)


class ChatCase(Frozen):
    """What happened to a chat's user, and what the user wanted, as the model writes it."""

    grievance: str
    """In the third person."""
    goals: Annotated[tuple[str, ...], Field(min_length=1, max_length=4)]
    """The aims of the user, in order."""
    facts: Annotated[tuple[str, ...], Field(max_length=4)]
    """The facts of the case, by the user."""


async def read_case(session: Session, domain: str, name: str, summary: str, attempt: int) -> ChatCase:
    """Read the case of a chat's user, with different goals and no empty facts, off the chat's summary.

    Args:
        domain: the assistant's domain, in the words of a prompt.
        name: what the user is to be called.
        summary: see `hallulab.agents.users.chats.summarize`.
        attempt: tries before; the first one has temperature 0.

    Raises:
        UnparseableAnswer: the answer is not in the form, or of an example.
        ModelError: no answer.
    """
    request = load_prompt("hallulab.agents.users", "chat_case").fill(
        domain=domain, name=name, summary=render_one_line(summary)
    )
    case = await session.structured(
        "case", request, ChatCase, max_tokens=_CASE_TOKENS, temperature=AGAIN * (attempt > 0), sample=attempt
    )
    if not case.grievance.strip():
        raise UnparseableAnswer("case: the model told of no grievance.")
    goals: dict[str, str] = {}
    for goal in map(make_goal, case.goals):
        goals.setdefault(goal.lower(), goal)
    copied = next((one for one in goals.values() if any(one in said.text for said in request[:-1])), None)
    if copied is not None:
        raise UnparseableAnswer(f"case: the model copied an example: {copied!r}")
    return ChatCase(
        grievance=render_one_line(case.grievance),
        goals=tuple(goals.values()),
        facts=tuple(render_one_line(fact) for fact in case.facts if fact.strip()),
    )


async def read_manner(session: Session, chat: Sequence[Message]) -> str | None:
    """Return the one of `MANNERS` in which a chat's user speaks; None: none of them fits.

    Raises:
        UnparseableAnswer: the model named none by its letter.
        ModelError: no answer.
    """
    letters = string.ascii_uppercase[: len(MANNERS) + 1]
    told = zip(letters, (*MANNERS, "None of these"), strict=True)
    said = [message.text for message in chat if message.role == "user"][:_MESSAGES]
    request = load_prompt("hallulab.agents.users", "chat_manner").fill(
        manners="\n".join(f"{letter}. {text}" for letter, text in told),
        messages="\n".join(f"- {shorten_line(text)}" for text in said),
    )
    share = await session.choose("manner", request, list(letters))
    return dict(zip(letters, MANNERS, strict=False)).get(max(letters, key=lambda letter: share[letter]))


def parts(goal: str) -> list[str]:
    """Return the questions that a goal asks, each as a goal.

    >>> parts("Learn what a card costs, and who may have one")
    ['Learn what a card costs', 'Learn who may have one']
    """
    return [f"Learn {asked}" for asked in _JOINT.split(asked_for(goal))]


def told_in(said: str, fact: str) -> bool:
    """Return whether a user's messages tell a fact: all its numbers, and at least half of its other words.

    >>> told_in("I paid Rs 1,500 for a kettle", "The user paid 1500 rupees")
    True
    >>> told_in("I paid Rs 1,500 for a kettle", "The seller must refund the price")
    False
    """
    wanted, known = _content_stems(fact), _content_stems(said)
    return numbers(fact) <= numbers(said) and 2 * len(wanted & known) >= len(wanted)


def _content_stems(text: str) -> frozenset[str]:
    words = (read_word(found[0]) for found in TOKEN.finditer(text))
    return frozenset(word.stem for word in words if word.content and not word.number) - _NOBODY


def numbers(text: str) -> frozenset[str]:
    """Return the numbers of a text in digits, however they are written.

    >>> sorted(numbers("Rs 1,500 within sixty days"))
    ['1500', '60']
    """
    return frozenset(digits for item in find_items(text) for digits in re.findall(r"\d[\d.]*", item.key))
