"""Read off a real chat, with a served model, what a persona consists of: the user's case, goals and manner.

The case is read off the chat's summary (`hallulab.agents.users.summarizer`), the manner off the user's own
messages.
"""

from __future__ import annotations

import re
import string
from collections.abc import Sequence
from typing import Annotated

from pydantic import Field

from hallulab.agents.models.errors import UnparseableAnswer
from hallulab.agents.models.model import Session
from hallulab.agents.models.prompt import load_prompt
from hallulab.agents.users.persona_writer import AGAIN, MANNERS, asked_for, make_goal
from hallulab.scenarios.text.items import find_items
from hallulab.scenarios.text.word_forms import TOKEN, read_word
from hallulab.scenarios.text.wording import render_one_line, shorten_line
from hallulab.scenarios.transcript import Frozen, Message

_CASE_TOKENS = 320
"""Limit of the answer."""

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
    """What the user wanted to learn, in order."""
    facts: Annotated[tuple[str, ...], Field(max_length=4)]
    """What the user told of the case."""


async def read_case(session: Session, domain: str, name: str, summary: str, attempt: int) -> ChatCase:
    """Read the case of a chat's user off the chat's summary.

    Args:
        session: asks the model.
        domain: the assistant's domain, in the words of a prompt.
        name: what the user is to be called.
        summary: see `hallulab.agents.users.summarizer.summarize`.
        attempt: tries before; the first one has temperature 0.

    Returns:
        The case with different goals, as personas have them, and facts that are not empty.

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
