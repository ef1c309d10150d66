"""Ways of talking: the act of each message of a simulated user, drawn by persona, seed and turn.

People seldom ask one question in every message: they command, type keywords, tell, answer, say "more". A
manner gives each act its share of first and of follow-up messages. The draw sees no reply, so users do the
same in the same turn with every chatbot, unless the act does not fit: then another one is drawn.

How messages of an act are worded: by the model (`acts.yaml`) or, in English and where a rule is sure, by rule
(`hallulab.agents.users.act_rules`).
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from functools import cache
from importlib.resources import files
from typing import Annotated, Literal, get_args

import yaml
from pydantic import Field, TypeAdapter

from hallulab.agents.users.act_rules import draw_share, find_untold_fact, write_note
from hallulab.scenarios.packs.pack import Persona
from hallulab.scenarios.text.scripts import QUESTION_MARKS
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
ASKING = frozenset({"asks", "two-in-one", "thanks-and-returns", "changes-subject", "pastes"})
"""Acts whose message must ask for an open goal. In English it is that of the usual prompts, with something
added by rule."""
NAMES_GOAL = (ASKING - {"two-in-one"}) | {"commands", "topic", "impatient"}
"""Acts whose message is about one goal, so that its reply can be compared with the goal's label."""

Share = Annotated[float, Field(ge=0.0, allow_inf_nan=False)]


class ActShares(Frozen):
    """How often a user talks in which way."""

    first: dict[Act, Share]
    """Act → its share of first messages; shares are relative to their sum."""
    later: dict[Act, Share]
    """Act → its share of follow-up messages."""
    turns: tuple[int, ...] = ()
    """Numbers of messages, of which each user draws one: it goes on until then, though its goals are reached,
    and no longer, though one is open. Empty: the goals alone decide."""


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
    """Draw the act of the next message; if it does not fit what was said, one of those that do."""
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
    case is pasted once, and no fact is told twice.
    """
    if not history:
        return can_open(act)
    if act == "answers":
        return QUESTION_MARKS.search(history[-1].text) is not None
    if act == "pastes":
        note = write_note(persona)
        return not any(message.role == "user" and note in message.text for message in history)
    if act == "tells":
        return find_untold_fact(persona, history) is not None
    return True


def draw_turns(shares: ActShares | None, persona: str, seed: int) -> int:
    """Draw the number of messages at which a user ends; 0: the goals alone decide."""
    if shares is None or not shares.turns:
        return 0
    return shares.turns[int(draw_share(persona, seed, "turns") * len(shares.turns))]


def _draw_from(shares: Mapping[Act, float], *parts: object) -> Act:
    left = draw_share(*parts) * sum(shares.values())
    for act, share in shares.items():
        left -= share
        if left < 0:
            return act
    return "asks"


def allow_flaws(act: str | None) -> Collection[str]:
    """Return the kinds of flaws that are none in a message of an act.

    People repeat "more", and what they are impatient about. A pasted note speaks of the user in the third
    person, and may copy letters that advise.
    """
    if act in ("goes-on", "impatient", "corrects"):
        return ("repeated",)
    return ("repeated", "role_swap", "leaked_instructions") if act == "pastes" else ()
