"""Marks of a page that claim nothing: citations, the numbers of a list, the head of a table."""

from __future__ import annotations

import re
from collections.abc import Iterator

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
    return blank_regions(text, _find_marks(text, list_numbers))


def _find_marks(text: str, list_numbers: bool) -> Iterator[tuple[int, int]]:
    if "[" in text or "【" in text:
        for match in NUMBERED_MARK.finditer(text):
            yield match.span()
    if list_numbers:
        for match in _LIST_NUMBER.finditer(text):
            yield match.span()
    if "|" in text and "-" in text:
        for match in _TABLE_RULE.finditer(text):
            head = text.rfind("\n", 0, max(0, match.start() - 1)) + 1
            if "|" in text[head : match.start()]:
                yield head, match.start()
