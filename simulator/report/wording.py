"""Numbers and counts as people read them, and reasons in brief."""

from __future__ import annotations

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


def harmless(text: str) -> str:
    """Lines that a terminal takes for nothing but text: they may hold what a model or a server wrote."""
    return "".join(char if char.isprintable() or char == "\n" else "�" for char in text)


def in_brief(text: str) -> str:
    """One harmless line of a reason."""
    line = harmless(" ".join(text.split()))
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
