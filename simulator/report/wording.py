"""Counts as people say them."""

from __future__ import annotations


def noun(number: int, one: str, more: str | None = None) -> str:
    """`one` for one thing, `more` for any other number; by default that is `one` and an s."""
    if number == 1:
        return one
    return f"{one}s" if more is None else more


def counted(number: int, word: str) -> str:
    """A number and its noun, such as `1 turn` and `2 turns`."""
    return f"{number} {noun(number, word)}"
