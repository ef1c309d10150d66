"""Numbers and counts as people read them, and reasons in brief."""

from __future__ import annotations

import unicodedata
from collections.abc import Sequence

NOTHING = "–"
"""What is shown for a number that an empty denominator leaves undefined."""
BRIEF = 200
"""Characters told of a reason."""


def noun(number: int, one: str, more: str | None = None) -> str:
    """`one` for one thing, `more` for any other number; by default that is `one` and an s."""
    if number == 1:
        return one
    return f"{one}s" if more is None else more


def counted(number: int, word: str) -> str:
    """A number and its noun, such as `1 turn` and `2 turns`."""
    return f"{number} {noun(number, word)}"


_KEPT = "\n\u200c\u200d"
"""Line breaks, and what joins letters or keeps them apart in Indian scripts, in Persian and in emoji."""


def harmless(text: str) -> str:
    """Lines that a terminal takes for nothing but text: a model, a server or a stranger may write them.

    What it would obey (control characters, also those that turn the direction of writing), and what cannot
    be seen, becomes U+FFFD; any kind of space becomes a space.
    """
    if text.isascii() and text.isprintable():
        return text
    return "".join(letter if letter.isprintable() or letter in _KEPT else _shown(letter) for letter in text)


def _shown(letter: str) -> str:
    return " " if unicodedata.category(letter) == "Zs" else "�"


def one_line(text: str) -> str:
    """The text as one harmless line, whatever breaks it has."""
    return harmless(" ".join(text.split()))


def in_brief(text: str) -> str:
    """One harmless line of a reason or a name."""
    line = one_line(text)
    return line if len(line) <= BRIEF else f"{line[: BRIEF - 1]}…"


def number(value: float | None, digits: int, scale: float = 1) -> str:
    """A number for people, or a dash."""
    return NOTHING if value is None else f"{value * scale:.{digits}f}"


def with_interval(value: float | None, ci95: Sequence[float] | None, digits: int, scale: float = 1) -> str:
    """A number and its interval, such as `0.42 [0.30, 0.55]`; the interval is left out when there is none."""
    if ci95 is None:
        return number(value, digits, scale)
    low, high = (number(bound, digits, scale) for bound in ci95)
    return f"{number(value, digits, scale)} [{low}, {high}]"
