"""Citations in square brackets: numbers or titles of documents (RAG-Trust section 5.3)."""

from __future__ import annotations

import re
from collections.abc import Sequence

_BRACKETS = re.compile(r"\[([^\[\]\n]{1,200})\]")
_NUMBERS = re.compile(r"\s*\d{1,6}(?:\s*[,;]\s*\d{1,6})*\s*")
_SPACE = re.compile(r"\s+([.,;:!?])")


def find_cited(reply: str, titles: Sequence[str]) -> frozenset[int]:
    """Return the numbers of the documents that a reply cites, each once.

    `[2]`, `[1][3]`, `[1, 3]` and `[a title]` are citations; other words in brackets are not. A number that no
    document has is a citation, too: a wrong one.
    """
    numbers: set[int] = set()
    by_title = {title.casefold(): number for number, title in enumerate(titles, start=1)}
    for inside in _BRACKETS.findall(reply):
        if _NUMBERS.fullmatch(inside):
            numbers.update(int(number) for number in re.findall(r"\d+", inside))
        elif inside.strip().casefold() in by_title:
            numbers.add(by_title[inside.strip().casefold()])
    return frozenset(numbers)


def remove_citations(reply: str, titles: Sequence[str]) -> str:
    """Return a reply without its citations, for comparing its words with the right answer's."""

    def kept(found: re.Match[str]) -> str:
        return "" if find_cited(found[0], titles) else found[0]

    return _SPACE.sub(r"\1", _BRACKETS.sub(kept, reply)).strip()
