"""Numbers and counts as people read them, and reasons in brief."""

from __future__ import annotations

import unicodedata
from collections.abc import Sequence

NOTHING = "–"
"""Shown for a number that an empty denominator leaves undefined."""
BRIEF = 200
"""Most characters shown of a reason."""


def choose_noun(number: int, one: str, more: str | None = None) -> str:
    """Return `one` for one thing, `more` for any other number; by default `more` is `one` and an s."""
    if number == 1:
        return one
    return f"{one}s" if more is None else more


def format_count(number: int, word: str) -> str:
    """Return a number and its noun, such as `1 turn` and `2 turns`."""
    return f"{number} {choose_noun(number, word)}"


_KEPT = "\n\u200c\u200d"
"""Line breaks, and characters that join letters or keep them apart in Indian scripts, Persian and emoji."""


def join_names(names: Sequence[str]) -> str:
    """Join names for a sentence: `a, b and c`."""
    return " and ".join([", ".join(names[:-1]), names[-1]]) if len(names) > 1 else "".join(names)


def clean_for_terminal(text: str) -> str:
    """Return lines that a terminal takes for nothing but text; models, servers and strangers may write them.

    Control characters (also those that turn the direction of writing) and invisible ones become U+FFFD; any
    kind of space becomes a space.
    """
    if text.isascii() and text.isprintable():
        return text
    return "".join(
        letter
        if letter.isprintable() or letter in _KEPT
        else " "
        if unicodedata.category(letter) == "Zs"
        else "�"
        for letter in text
    )


def render_one_line(text: str) -> str:
    """Return the text as one harmless line, without its line breaks."""
    return clean_for_terminal(" ".join(text.split()))


def shorten_line(text: str) -> str:
    """Return one harmless, short line of a reason or a name."""
    line = render_one_line(text)
    return line if len(line) <= BRIEF else f"{line[: BRIEF - 1]}…"


def format_number(value: float | None, digits: int, scale: float = 1) -> str:
    """Format a number for people, or a dash."""
    return NOTHING if value is None else f"{value * scale:.{digits}f}"


def format_with_interval(
    value: float | None, ci95: Sequence[float] | None, digits: int, scale: float = 1
) -> str:
    """Format a number and its interval, if it has one, such as `0.42 [0.30, 0.55]`."""
    if ci95 is None:
        return format_number(value, digits, scale)
    low, high = (format_number(bound, digits, scale) for bound in ci95)
    return f"{format_number(value, digits, scale)} [{low}, {high}]"


def is_blank(text: str) -> bool:
    """Return whether no sign of a text can be seen: it has spaces, and signs of control or format, at most.

    >>> is_blank(" \\n\\u200b"), is_blank("…")
    (True, False)
    """
    return not any(sign.isprintable() and not sign.isspace() for sign in text)
