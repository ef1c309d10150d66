"""Words and the forms in which two of them count as the same.

EvidenceChain names "deterministic tokenization" and stop words (Method, Limitations), not how; here a token
is a number (`1,250.50`, `17:30`), a clock time with am or pm (`5 PM`), or a run of letters. Two forms of each
are compared: `exact` (lower case; numbers without thousands separators and trailing zeros) and `stem`
(English Snowball stem; number words as digits, clock times on 24 hours).
"""

from __future__ import annotations

import re
from functools import cache, lru_cache
from typing import Any, NamedTuple

TOKEN = re.compile(
    r"(\d{1,2}(?::\d{1,2})?[ ]?[aApP]\.?[mM]\b"
    r"|\d+(?:[.,:]\d+)*"
    r"|[A-Z]?[^\W\d_A-Z]+(?:['’][^\W\d_]+)?"
    r"|[A-Z]+(?![^\W\d_A-Z])"
    r"|[A-Z])"
)
"""A token, in one group. camelCase and snake_case names of record fields come apart: `OutdoorSeating`,
`business_stars`."""
_CLOCK = re.compile(r"(\d{1,2})(?::(\d{1,2}))?(?: ?([ap])\.?m)?\Z")
NUMBER_WORDS = {
    "zero": "0",
    "one": "1",
    "two": "2",
    "three": "3",
    "four": "4",
    "five": "5",
    "six": "6",
    "seven": "7",
    "eight": "8",
    "nine": "9",
    "ten": "10",
    "eleven": "11",
    "twelve": "12",
    "twenty": "20",
}
"""Number words that count as the number; those that the trained models know."""


class Word(NamedTuple):
    """What is known of a token's text, whatever its place."""

    exact: str
    """Lower case, without a possessive; a number in its shortest spelling."""
    stem: str
    """What counts as the same word in the extended features."""
    number: bool
    """Arabic numerals."""
    content: bool
    """Neither a stop word nor a single letter."""


@lru_cache(maxsize=1 << 16)
def read_word(spelling: str) -> Word:
    """What is known of a token of that spelling."""
    lower = spelling.lower()
    if lower[0].isdigit():
        exact = _shortest_number(lower)
        return Word(exact=exact, stem=_clock(lower) or exact, number=True, content=True)
    exact = lower[:-2] if lower.endswith(("'s", "’s")) else lower
    content = exact in NUMBER_WORDS or (len(exact) > 1 and exact not in _stop_words())
    return Word(
        exact=exact,
        stem=NUMBER_WORDS.get(exact) or _stemmer().stemWord(exact),
        number=False,
        content=content,
    )


def _shortest_number(number: str) -> str:
    plain = number.replace(",", "").replace(" ", "").replace(".m", "m")
    if re.fullmatch(r"\d+\.\d+", plain):
        plain = plain.rstrip("0").rstrip(".")
    return plain.lstrip("0") or "0"


def _clock(text: str) -> str | None:
    """A time of day as `hours:minutes` of 24 hours, or None: `5 pm` and `17:0` are `17:00`."""
    match = _CLOCK.match(text)
    if match is None or (match[2] is None and match[3] is None):
        return None
    hour = int(match[1])
    if match[3]:
        hour = hour % 12 + (12 if match[3] == "p" else 0)
    return f"{hour}:{int(match[2] or 0):02d}"


@cache
def _stop_words() -> frozenset[str]:
    from sklearn.feature_extraction.text import ENGLISH_STOP_WORDS

    return frozenset(ENGLISH_STOP_WORDS)


@cache
def _stemmer() -> Any:
    import Stemmer

    return Stemmer.Stemmer("english")
