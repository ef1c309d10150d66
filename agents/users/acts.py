"""Ways of talking: the act of each message of a simulated user, drawn by persona, seed and turn.

People seldom ask one question in every message: they command, type keywords, tell, answer, say "more". A
manner gives each act its share of first and of follow-up messages. The draw sees no reply, so users do the same
in the same turn with every chatbot, unless the act does not fit: then another one is drawn from those that do.

Sure things are made by rule in English: phrases that ask to go on, thanks, the note that is pasted. The rest is
worded by the model, in other languages all of it (`acts.yaml`).
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from functools import cache
from importlib.resources import files
from typing import Annotated, Literal, get_args

import yaml
from pydantic import Field, TypeAdapter

from hallulab.scenarios.files.json_text import digest
from hallulab.scenarios.packs.pack import Persona
from hallulab.scenarios.transcript import Frozen, Message

Act = Literal[
    "asks",
    "commands",
    "topic",
    "tells",
    "answers",
    "goes-on",
    "corrects",
    "misunderstands",
    "impatient",
    "thanks-and-returns",
    "changes-subject",
    "two-in-one",
    "pastes",
]
ACTS: tuple[Act, ...] = get_args(Act)
ASKING = frozenset({"asks", "two-in-one", "thanks-and-returns", "changes-subject"})
"""Acts whose message must ask for an open goal."""
WITH_PLAIN_MESSAGE = frozenset({"asks", "thanks-and-returns", "changes-subject", "pastes"})
"""Acts that in English are the message of the usual prompts, with something added by rule."""

Share = Annotated[float, Field(ge=0.0, allow_inf_nan=False)]


class ActShares(Frozen):
    """How often a user talks in which way."""

    first: dict[Act, Share]
    """Act → its share of first messages; shares are relative to their sum."""
    later: dict[Act, Share]
    """Act → its share of follow-up messages."""
    turns: tuple[int, ...] = ()
    """Numbers of messages, of which each user draws one: whose goals are reached before goes on until then."""


class ActWording(Frozen):
    """How a model is asked for an act: what its message is, and three of them."""

    instruction: str
    examples: tuple[str, str, str]


class ActWordings(Frozen):
    """How a model is asked for an act in a first and in a follow-up message."""

    opening: ActWording | None = None
    """None: no first message is of this act."""
    follow_up: ActWording


@cache
def load_act_wordings() -> Mapping[Act, ActWordings]:
    """Return how a model is asked for each act but the plain question."""
    text = files("hallulab.agents.users").joinpath("acts.yaml").read_text(encoding="utf-8")
    return TypeAdapter(dict[Act, ActWordings]).validate_python(yaml.safe_load(text))


def can_open(act: Act) -> bool:
    """Return whether a first message can be of an act."""
    return act == "asks" or load_act_wordings()[act].opening is not None


def mix_shares(parts: Sequence[ActShares]) -> ActShares | None:
    """Return the shares of a mixture of manners, each with the same weight; None without parts."""
    if not parts:
        return None
    return ActShares(
        first=_average([part.first for part in parts]),
        later=_average([part.later for part in parts]),
        turns=tuple(number for part in parts for number in part.turns),
    )


def _average(parts: Sequence[Mapping[Act, float]]) -> dict[Act, float]:
    sums = [sum(part.values()) for part in parts]
    mixed = {
        act: sum(part.get(act, 0.0) / total for part, total in zip(parts, sums, strict=True)) / len(parts)
        for act in ACTS
    }
    return {act: share for act, share in mixed.items() if share}


def draw_act(shares: ActShares, persona: Persona, seed: int, history: Sequence[Message]) -> Act:
    """Draw the act of the next message; one that does not fit what was said is drawn again from the others."""
    turn = sum(message.role == "assistant" for message in history)
    open_to = shares.later if history else shares.first
    act = _draw_from(open_to, persona.id, seed, turn, "act")
    if fits(act, persona, history):
        return act
    fitting = {other: share for other, share in open_to.items() if fits(other, persona, history)}
    return _draw_from(fitting, persona.id, seed, turn, "other act")


def fits(act: Act, persona: Persona, history: Sequence[Message]) -> bool:
    """Return whether a message of an act can follow what was said.

    A first message can only be of some acts. An answer needs a question of the chatbot. The note about the
    case is pasted once.
    """
    if not history:
        return can_open(act)
    if act == "answers":
        return "?" in history[-1].text
    if act == "pastes":
        note = write_note(persona)
        return not any(message.role == "user" and note in message.text for message in history)
    return True


def draw_turns(shares: ActShares | None, persona: str, seed: int) -> int:
    """Draw the number of messages up to which a user goes on when its goals are reached; 0: none."""
    if shares is None or not shares.turns:
        return 0
    return shares.turns[int(_draw_share(persona, seed, "turns") * len(shares.turns))]


def draw_phrase(phrases: Sequence[str], persona: str, seed: int, turn: int) -> str:
    """Draw one of the phrases that a rule adds to a message."""
    return phrases[int(_draw_share(persona, seed, turn, "phrase") * len(phrases))]


def _draw_from(shares: Mapping[Act, float], *parts: object) -> Act:
    left = _draw_share(*parts) * sum(shares.values())
    for act, share in shares.items():
        left -= share
        if left < 0:
            return act
    return "asks"


def _draw_share(*parts: object) -> float:
    """Return a number in [0, 1) that depends on the parts only."""
    return int(digest(list(parts))[:13], 16) / 16**13


GOES_ON = (
    "more",
    "go on",
    "and then?",
    "continue",
    "tell me more",
    "next",
    "ok and then",
    "what else",
    "more details",
    "and?",
    "more on that",
    "ok go on",
)
"""Messages that only ask the chatbot to go on."""
THANKS = ("thanks", "thank you", "Thanks!", "ok thanks", "thx", "Thank you very much", "great, thank you")
"""Thanks, alone or before a message."""
ASIDE = ("ok, something else: ", "another thing. ", "ok. ", "different question - ", "and ", "anyway, ", "")
"""Before a message that changes the subject."""
BESIDE = (
    "Learn one more detail of what the assistant said last",
    "Learn what exactly that means",
    "Learn what to do first",
    "Learn how long that takes",
    "Learn an example of that",
    "Learn what happens if that does not help",
)
"""Wishes of a user whose goals are reached: they are about the last reply."""
_NOTES = (
    "My complaint as it was filed:\n\n{case}\n\nDetails:\n{facts}\n\n{name}",
    "Subject: complaint of {name}\n\nThis is what I wrote down. {case}\n{facts}\n\nRegards\n{name}",
    "Note of my call\nCaller: {name}\nMatter: {case}\nOn file:\n{facts}",
)
"""Forms of the note that is pasted."""


def write_note(persona: Persona) -> str:
    """Return the note about its own case that a persona pastes: a complaint, a mail or a note of a call."""
    form = _NOTES[int(_draw_share(persona.id, "note") * len(_NOTES))]
    facts = "\n".join(f"- {fact}" for fact in persona.facts)
    return form.format(name=persona.name, case=persona.grievance.strip(), facts=facts)


def add_by_rule(act: Act, text: str, persona: Persona, seed: int, turn: int) -> str:
    """Return a plain English message with what its act adds: thanks, another subject, the pasted note."""
    if act == "thanks-and-returns":
        thanks = draw_phrase(THANKS, persona.id, seed, turn)
        if not text:
            return thanks
        # Seldom one thanks in advance.
        if _draw_share(persona.id, seed, turn, "place") < 0.2:
            return f"{text} {thanks}"
        return f"{thanks}{'' if thanks.endswith('!') else '.'} {text}"
    if act == "changes-subject":
        return f"{draw_phrase(ASIDE, persona.id, seed, turn)}{text}"
    if act == "pastes":
        note = write_note(persona)
        before = _draw_share(persona.id, seed, turn, "place") < 0.5
        return f"{text}\n\n{note}" if before else f"{note}\n\n{text}"
    return text


def allow_flaws(act: str | None) -> Collection[str]:
    """Return the kinds of flaws that are none in a message of an act.

    People repeat "more", and what they are impatient about. A pasted note speaks of the user in the third
    person, and may copy letters that advise.
    """
    if act in ("goes-on", "impatient", "corrects"):
        return ("repeated",)
    return ("repeated", "role_swap", "leaked_instructions") if act == "pastes" else ()
