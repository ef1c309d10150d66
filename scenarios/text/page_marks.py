"""Marks of a page that claim nothing: citations, the numbers of a list, the head of a table."""

from __future__ import annotations

import re

from hallulab.scenarios.text.citations import NUMBERED_MARK, blank_regions

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
    marks: list[tuple[int, int]] = []
    if "[" in text or "【" in text:
        marks += (match.span() for match in NUMBERED_MARK.finditer(text))
    if list_numbers:
        marks += (match.span() for match in _LIST_NUMBER.finditer(text))
    if "|" in text and "-" in text:
        for match in _TABLE_RULE.finditer(text):
            head = text.rfind("\n", 0, max(0, match.start() - 1)) + 1
            if "|" in text[head : match.start()]:
                marks.append((head, match.start()))
    return blank_regions(text, marks)
