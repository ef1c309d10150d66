"""Marks of a page that claim nothing: citations, the numbers of a list, the head of a table."""

from __future__ import annotations

import re
from collections.abc import Iterator

_CITATION = re.compile(
    r"\[\^?\d{1,3}(?:[ ]?[,–-][ ]?\^?\d{1,3}){0,20}\](?::[ \t]++\S++(?=[ \t]*+(?:\n|\Z)))?|\[doc\d{1,3}\]"
    r"|【[^】\n]{0,100}】"
)
"""`[1]`, `[2, 3]`, `[^1]` and its line `[^1]: cards.md`; Azure's `[doc1]`, OpenAI's `【4:0†source】`."""
_LIST_NUMBER = re.compile(r"^[ \t]*+(?:[*_]{1,2})?\(?\d{1,3}[.)](?=[\s*_])", re.MULTILINE)
_TABLE_RULE = re.compile(r"^[ \t]*+\|?(?:[ \t]*+:?-++:?[ \t]*+\|)++(?:[ \t]*+:?-++:?)?[ \t]*+$", re.MULTILINE)
"""The line of Markdown between the head of a table and its rows."""


def blank_marks(text: str, *, list_numbers: bool = True) -> str:
    """Return a text with spaces in the place of marks that claim nothing; all else stays where it is.

    >>> blank_marks("1. Films for 7 days [2].")
    '   Films for 7 days    .'

    Args:
        list_numbers: whether the numbers at the beginning of lines are such marks.
    """
    found = list(_find_marks(text, list_numbers))
    if not found:
        return text
    signs = list(text)
    for start, end in found:
        signs[start:end] = [" " if sign != "\n" else sign for sign in signs[start:end]]
    return "".join(signs)


def _find_marks(text: str, list_numbers: bool) -> Iterator[tuple[int, int]]:
    if "[" in text or "【" in text:
        for match in _CITATION.finditer(text):
            yield match.span()
    if list_numbers:
        for match in _LIST_NUMBER.finditer(text):
            yield match.span()
    if "|" in text and "-" in text:
        for match in _TABLE_RULE.finditer(text):
            head = text.rfind("\n", 0, max(0, match.start() - 1)) + 1
            if "|" in text[head : match.start()]:
                yield head, match.start()
