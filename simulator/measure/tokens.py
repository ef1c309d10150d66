"""The one tokenizer that every detector's spans are projected on.

A token is a word (a run of letters, digits, underscores and the marks that belong to letters) or a single
other character that is not white space. It is independent of any model on purpose: token accuracy shall
compare chatbots on different models and detectors with different units, and a reply must not score better
because its model's vocabulary cuts it into more pieces. The HalluDetect paper does not name its tokenizer.
"""

from __future__ import annotations

import functools
import re
import sys
import unicodedata
from collections.abc import Iterable, Iterator
from itertools import groupby

from scenarios.transcript import Span

_JOINERS = "\u200c\u200d"
_PLANES_WITH_MARKS = (range(0x300, 0x20000), range(0xE0100, 0xE01F0))
"""Code points among which all marks are; looking at the whole of Unicode takes a third of a second."""


_NOWHERE = (sys.maxsize, sys.maxsize)

Token = tuple[int, int]
"""Where a word or a punctuation mark stands: its first character (code point), and one past the last."""


@functools.cache
def _pattern() -> re.Pattern[str]:
    # `\w` leaves out combining marks, which would cut Hindi or Tamil words at every vowel sign.
    marks = "".join(f"{chr(first)}-{chr(last)}" for first, last in _runs_of_marks())
    # White space is passed over first: to find that a character is none of so many takes longest.
    return re.compile(rf"(?!\s)(?:[\w{marks}{_JOINERS}]+|.)", re.DOTALL)


def _runs_of_marks() -> Iterator[tuple[int, int]]:
    """First and last code point of each run of combining marks."""
    for codes in _PLANES_WITH_MARKS:
        for is_mark, run in groupby(codes, lambda code: unicodedata.category(chr(code)).startswith("M")):
            if is_mark:
                first, *others = run
                yield first, others[-1] if others else first


def tokenize(text: str) -> list[Token]:
    """The tokens of `text`, in order, without overlaps; white space belongs to none.

    >>> tokenize("Rs 500.")
    [(0, 2), (3, 6), (6, 7)]
    """
    return [match.span() for match in _pattern().finditer(text)]


def count_tokens(text: str) -> int:
    """How many tokens a text has.

    >>> count_tokens("Rs 500.")
    3
    """
    return len(_pattern().findall(text))


def hallucinated(tokens: Iterable[Token], spans: Iterable[Span]) -> list[bool]:
    """For each token whether a located span overlaps it by at least one character.

    Spans form a union: a token under two spans is hallucinated once. Unlocated spans touch no token.

    >>> hallucinated(tokenize("Rs 500."), [Span(start=3, end=4, text="5")])
    [False, True, False]

    Args:
        tokens: in the order of the text.
        spans: in any order.
    """
    stretches = _union(spans)
    left, right = next(stretches)
    marks = []
    for start, end in tokens:
        while right <= start:
            left, right = next(stretches, _NOWHERE)
        marks.append(left < end)
    return marks


def _union(spans: Iterable[Span]) -> Iterator[tuple[int, int]]:
    """The stretches under at least one span, from left to right, apart from each other; one at least."""
    places = sorted(
        (span.start, span.end) for span in spans if span.start is not None and span.end is not None
    )
    left = right = 0
    for start, end in places:
        if start > right:
            yield left, right
            left = start
        right = max(right, end)
    yield left, right
