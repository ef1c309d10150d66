"""How simulated users speak: what the model is told in place of a persona's manner, and slips made by rule.

Rules are for what models do badly: a model that is told to misspell writes as ever, or misspells every word.
"""

from __future__ import annotations

import random
import re
from collections.abc import Mapping, Sequence
from functools import cache
from importlib.resources import files

import yaml
from pydantic import Field, TypeAdapter

from hallulab.scenarios.files.digest import digest
from hallulab.scenarios.packs.pack import Persona
from hallulab.scenarios.transcript import Frozen

JOINT = "+"
"""Joins the names of manners that one user has."""

OWN = "own"
"""The name of the persona's own manner."""

DEFAULT_MANNERS = ("plain", "plain", "plain", "terse", "plain+pushes-back", "plain+misspelling")
"""What users draw from if nothing else is said: messages as short as people's (docs/realism.md)."""

_LONG_WORD = re.compile(r"[A-Za-z]{5,}")
_ARTICLE = re.compile(r"\b(?:a|an|the) (?=\w)", re.IGNORECASE)


class StyleProfile(Frozen):
    """A way to speak."""

    text: str | None = None
    """What the model is told; None: nothing."""
    short: bool = False
    """Whether the model is shown messages of a few words as examples, in place of the usual ones."""
    tokens: int | None = Field(default=None, ge=1)
    """Limit of a message; None: the usual one."""
    misspelt: float = Field(default=0.0, ge=0, le=1)
    """Share of words of five letters and more that get a slip of the finger."""
    without_articles: float = Field(default=0.0, ge=0, le=1)
    """Share of articles that are left out."""


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
    )


def draw_manner(names: Sequence[str], persona: str, seed: int) -> str | None:
    """Draw the manner of a user, whichever chatbot it talks with; None if there are none to draw from."""
    return names[int(digest([names, persona, seed])[:8], 16) % len(names)] if names else None


def speaking(persona: Persona, manner: StyleProfile) -> Persona:
    """Return the persona with another manner; its own one stays where the model is told nothing."""
    return persona.model_copy(update={"manner": manner.text}) if manner.text else persona


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
