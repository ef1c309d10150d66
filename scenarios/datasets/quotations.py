"""Find the words that annotators quote in a reply."""

from __future__ import annotations

from collections.abc import Sequence


def locate_quotations(reply: str, quotations: Sequence[str]) -> tuple[tuple[int, int] | None, ...]:
    """Return [start, end) of each quotation in characters of the reply.

    The n-th of equal quotations has the n-th place with these words; places do not overlap. None if there is
    no such place, and for an empty quotation.
    """
    ends: dict[str, int] = {}
    found: list[tuple[int, int] | None] = []
    for quotation in quotations:
        at = reply.find(quotation, ends.get(quotation, 0)) if quotation else -1
        if at < 0:
            found.append(None)
        else:
            ends[quotation] = at + len(quotation)
            found.append((at, ends[quotation]))
    return tuple(found)
