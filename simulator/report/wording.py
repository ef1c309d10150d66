"""Counts as people say them, and reasons in brief."""

from __future__ import annotations

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
