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
from collections.abc import Iterable
from dataclasses import dataclass

from scenarios.transcript import Span

_JOINERS = "\u200c\u200d"


@dataclass(frozen=True)
class Token:
    """A word or a punctuation mark of a text."""

    start: int
    """First character (code point)."""
    end: int
    """One past the last character."""


@functools.cache
def _pattern() -> re.Pattern[str]:
    # `\w` leaves out combining marks, which would cut Hindi or Tamil words at every vowel sign.
    marks = "".join(
        chr(code) for code in range(sys.maxunicode + 1) if unicodedata.category(chr(code)).startswith("M")
    )
    word = rf"\w{marks}{_JOINERS}"
    return re.compile(rf"[{word}]+|[^{word}\s]")


def tokenize(text: str) -> tuple[Token, ...]:
    """The tokens of `text`, in order, without overlaps; white space belongs to none."""
    return tuple(Token(match.start(), match.end()) for match in _pattern().finditer(text))


def hallucinated(tokens: Iterable[Token], spans: Iterable[Span]) -> tuple[bool, ...]:
    """For each token whether a located span overlaps it by at least one character.

    Spans form a union: a token under two spans is hallucinated once. Unlocated spans touch no token.
    """
    places = [(span.start, span.end) for span in spans if span.start is not None and span.end is not None]
    return tuple(any(start < token.end and token.start < end for start, end in places) for token in tokens)
