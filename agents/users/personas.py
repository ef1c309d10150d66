"""Write personas with a served model, and say how they speak.

A goal that the documents answer, and one that they do not, are written from a passage; then somebody's case
is invented around them: short answers in JSON, from examples. Small models do each of these steps better than
all in one. How a user speaks is told to the model, and slips are made by rule: a model that is told to
misspell writes as ever, or misspells every word.
"""

from __future__ import annotations

import random
import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import cache
from importlib.resources import files
from typing import Annotated

import yaml
from pydantic import Field, TypeAdapter

from hallulab.agents.models.answers import UnparseableAnswer
from hallulab.agents.models.prompt import ChatMessage, load_prompt
from hallulab.agents.models.session import Session
from hallulab.agents.users.acts import ActShares, mix_shares
from hallulab.scenarios.files.json_text import digest
from hallulab.scenarios.packs.pack import Persona
from hallulab.scenarios.text.languages import ENGLISH, NAMES
from hallulab.scenarios.text.wording import render_one_line
from hallulab.scenarios.transcript import Frozen

_ABOUT_TOKENS, _GOALS_TOKENS, _CASE_TOKENS = 400, 120, 200
"""Limits of the answers."""

_TITLES = 30
"""Titles that the model is told at most."""

AGAIN = 0.7
"""Temperature of a second try; the first one has 0."""

_LONGEST_GOAL = 24
"""Words of a goal at most."""

_LEARN = re.compile(r"learn\s+", re.IGNORECASE)

_SMALL = re.compile(r"^(?:What|How|Who|When|Where|Which|Whether|Why|If|The|An?)\b")
"""Begins a goal that the model wrote without "Learn"."""

_FIRST = (
    "Amira Tomás Ngozi Linh Viktor Rosa Kofi Hana Mateo Ingrid Samir Yuki Elena Joaquim Priya Owen Zainab "
    "Piotr Lucía Tariq Maren Desta Noor Ilse"
)
_LAST = (
    "Haddad Novak Okafor Tran Petrov Silva Mensah Sato Rojas Larsen Rahman Mori Costa Pereira Nair Evans "
    "Bello Nowak Ortega Aziz Jansen Tesfaye Khan Weber"
)

MANNERS = (
    "Brief and polite.",
    "Direct, a little impatient; short sentences.",
    "Worried; tells more than is asked.",
    "Friendly; asks one thing at a time.",
    "Businesslike; gives figures without being asked.",
)
"""How written personas speak."""


class Colleague(Frozen):
    """One of the assistant's specialists, as the model writes it."""

    name: str
    title: str
    duty: str


class About(Frozen):
    """What a collection of documents is about, as the model writes it; see `Scenario`."""

    title: str
    domain: str
    assistant: str
    functions: Annotated[tuple[str, ...], Field(min_length=1, max_length=4)]
    specialists: Annotated[tuple[Colleague, ...], Field(min_length=1, max_length=2)]
    """Colleagues with different duties."""


class GoalPair(Frozen):
    """What a person may want to learn about the subject of a passage, as the model writes it."""

    said: str
    not_said: str


class Case(Frozen):
    """What happened to a person, as the model writes it."""

    grievance: str
    """In the third person."""
    facts: Annotated[tuple[str, ...], Field(max_length=4)]


async def write_about(session: Session, titles: Sequence[str], attempt: int) -> About:
    """Describe the assistant that answers from documents with these titles.

    Raises:
        UnparseableAnswer: the answer is not in the form.
        ModelError: no answer.
    """
    told = "\n".join(f"- {render_one_line(title)}" for title in titles[:_TITLES])
    request = load_prompt("hallulab.agents.users", "pack_about").fill(titles=told)
    about = await session.structured(
        "about", request, About, max_tokens=_ABOUT_TOKENS, temperature=AGAIN * (attempt > 0), sample=attempt
    )
    people = (text for one in about.specialists for text in (one.name, one.title, one.duty))
    if not all(
        text.strip() for text in (about.title, about.domain, about.assistant, *about.functions, *people)
    ):
        raise UnparseableAnswer("about: the model left something empty.")
    if any(about.domain in message.text for message in request[:-1]):
        raise UnparseableAnswer(f"about: the model copied an example: {about.domain!r}")
    return about


async def write_goals(session: Session, passage: str, attempt: int, language: str | None = None) -> GoalPair:
    """Write a goal that a passage answers and one that it does not, in a language (None: English).

    Raises:
        UnparseableAnswer: the answer is not in the form, or no goal.
        ModelError: no answer.
    """
    prompt = load_prompt("hallulab.agents.users", "persona_goals")
    request = request_in_language(prompt.fill(text=passage), language)
    pair = await session.structured(
        "goals",
        request,
        GoalPair,
        max_tokens=_GOALS_TOKENS,
        temperature=AGAIN * (attempt > 0),
        sample=attempt,
    )
    said, not_said = make_goal(pair.said), make_goal(pair.not_said)
    if said.lower() == not_said.lower():
        raise UnparseableAnswer(f"goals: the model wrote the same goal twice: {said!r}")
    return GoalPair(said=said, not_said=not_said)


async def write_case(
    session: Session, domain: str, name: str, goals: Sequence[str], attempt: int, language: str | None = None
) -> Case:
    """Invent the case of a person who has these goals, in a language (None: English).

    Raises:
        UnparseableAnswer: the answer is not in the form.
        ModelError: no answer.
    """
    told = "\n".join(f"- {goal}" for goal in goals)
    prompt = load_prompt("hallulab.agents.users", "persona_case")
    request = request_in_language(prompt.fill(domain=domain, name=name, goals=told), language)
    case = await session.structured(
        "case", request, Case, max_tokens=_CASE_TOKENS, temperature=AGAIN * (attempt > 0), sample=attempt
    )
    if not case.grievance.strip():
        raise UnparseableAnswer("case: the model told of no grievance.")
    return Case(
        grievance=render_one_line(case.grievance),
        facts=tuple(render_one_line(fact) for fact in case.facts if fact.strip()),
    )


async def is_answered(session: Session, goal: str, text: str) -> float:
    """Return the probability that a text tells what the goal asks for.

    Raises:
        UnparseableAnswer: the model answered neither Yes nor No.
        ModelError: no answer.
    """
    request = load_prompt("hallulab.agents.users", "goal_answered").fill(text=text, goal=goal)
    return (await session.choose("answered", request, ("Yes", "No")))["Yes"]


def asked_for(goal: str) -> str:
    """Return a goal without its first word, as a search asks for it."""
    return _LEARN.sub("", goal, count=1)


def names(number: int, seed: int) -> list[str]:
    """Return different names of people, drawn with a seed; numbered when all are used up."""
    pairs = [f"{first} {last}" for first in _FIRST.split() for last in _LAST.split()]
    drawn = random.Random(seed).sample(pairs, min(number, len(pairs)))  # noqa: S311 - a seeded choice of data
    more = [f"{drawn[place % len(drawn)]} {place // len(drawn) + 1}" for place in range(len(drawn), number)]
    return drawn + more


def make_goal(text: str) -> str:
    """Return a goal on one line that begins with "Learn", without a full stop.

    Raises:
        UnparseableAnswer: it is too short or too long.
    """
    asked = asked_for(render_one_line(text).strip().rstrip(" .?!"))
    if not 2 <= len(asked.split()) < _LONGEST_GOAL:
        raise UnparseableAnswer(f"goals: the model wrote no goal: {asked[:80]!r}")
    return f"Learn {_SMALL.sub(lambda found: found[0].lower(), asked)}"


JOINT = "+"
"""Joins the names of manners that one user has."""

OWN = "own"
"""The name of the persona's own manner."""

DEFAULT_MANNERS = (
    "people+plain",
    "people+plain",
    "people+terse",
    "people+own",
    "people+plain+pushes-back",
    "people+plain+misspelling",
)
"""Default ways of talking and lengths of messages: like people's (docs/realism.md)."""

_LONG_WORD = re.compile(r"[A-Za-z]{5,}")
_ARTICLE = re.compile(r"\b(?:a|an|the) (?=\w)", re.IGNORECASE)


class StyleProfile(Frozen):
    """A way to speak."""

    text: str | None = None
    """Instruction of the model; None: none."""
    short: bool = False
    """True if the model is shown messages of a few words as examples, in place of the usual ones."""
    tokens: int | None = Field(default=None, ge=1)
    """Limit of a message; None: the usual one."""
    misspelt: float = Field(default=0.0, ge=0, le=1)
    """Share of words of five letters and more that get a slip of the finger."""
    without_articles: float = Field(default=0.0, ge=0, le=1)
    """Share of articles that are left out."""
    acts: ActShares | None = None
    """How often the user talks in which way; None: every message asks."""


@cache
def load_manners() -> Mapping[str, StyleProfile]:
    """Return all manners by name."""
    text = files("hallulab.agents.users").joinpath("manners.yaml").read_text(encoding="utf-8")
    return TypeAdapter(dict[str, StyleProfile]).validate_python(yaml.safe_load(text))


def find_manner(name: str) -> StyleProfile:
    """Return a manner, or the mixture of several: `terse+misspelling`.

    Raises:
        KeyError: there is no such one.
    """
    parts = [load_manners()[part] for part in name.split(JOINT)]
    return StyleProfile(
        text=" ".join(part.text for part in parts if part.text) or None,
        short=any(part.short for part in parts),
        tokens=min((part.tokens for part in parts if part.tokens), default=None),
        misspelt=max(part.misspelt for part in parts),
        without_articles=max(part.without_articles for part in parts),
        acts=mix_shares([part.acts for part in parts if part.acts is not None]),
    )


def draw_manner(names: Sequence[str], persona: str, seed: int) -> str | None:
    """Draw the manner of a user, whichever chatbot it talks with; None if there are none to draw from."""
    return names[int(digest([names, persona, seed])[:8], 16) % len(names)] if names else None


def speaking(persona: Persona, manner: StyleProfile, language: str | None = None) -> Persona:
    """Return the persona with another manner; its own one stays where the model is told nothing."""
    if not manner.text:
        return persona
    text = manner.text.replace(NAMES[ENGLISH], NAMES[language or ENGLISH])
    return persona.model_copy(update={"manner": text})


def request_in_language(request: Sequence[ChatMessage], language: str | None) -> list[ChatMessage]:
    """Return a request for an answer in a language: its first message and its last line ask for it.

    Args:
        request: messages with instructions first; its examples may be in English.
        language: ISO 639-1; None: the request stays as it is.
    """
    if language is None:
        return list(request)
    first, *between, last = request
    asked = f"Whatever language the notes and examples are in, you write {NAMES[language]}."
    return [
        replace(first, text=f"{first.text.rstrip()} {asked}"),
        *between,
        replace(last, text=f"{last.text.rstrip().removesuffix(':')} (in {NAMES[language]}):"),
    ]


def slipped(text: str, manner: StyleProfile, seed: int) -> str:
    """Return a message with the slips of a manner, drawn with a seed. Numbers and short words stay."""
    generator = random.Random(seed)  # noqa: S311 - a seeded choice of data

    def without(found: re.Match[str]) -> str:
        return "" if generator.random() < manner.without_articles else found[0]

    def misspelt(found: re.Match[str]) -> str:
        word = found[0]
        if generator.random() >= manner.misspelt:
            return word
        # The first letter and the last one are seldom mistyped.
        at = generator.randrange(1, len(word) - 2)
        swapped = word[:at] + word[at + 1] + word[at] + word[at + 2 :]
        return generator.choice((swapped, word[:at] + word[at + 1 :], word[: at + 1] + word[at:]))

    shorter = _ARTICLE.sub(without, text)
    if shorter != text:
        shorter = shorter[:1].upper() + shorter[1:]
    return _LONG_WORD.sub(misspelt, shorter)
