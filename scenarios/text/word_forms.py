"""Words and the forms in which two of them count as the same.

EvidenceChain names "deterministic tokenization" and stop words (Method, Limitations), not how. Here a token
is a number (`1,250.50`, `17:30`), a clock time with am or pm (`5 PM`), or a run of letters. Each has two
forms: `exact` (lower case; numbers without thousands separators and trailing zeros) and `stem` (English
Snowball stem; number words as digits, clock times on 24 hours).
"""

from __future__ import annotations

import re
from functools import cache, lru_cache
from typing import Any, NamedTuple

from hallulab.scenarios.text.stop_words import STOP_WORDS

TOKEN = re.compile(
    r"(\d{1,2}(?::\d{1,2})?[ ]?[aApP]\.?[mM]\b"
    r"|\d+(?:[.,:]\d+)*"
    r"|[A-Z]?[^\W\d_A-Z]+(?:['’][^\W\d_]+)?"
    r"|[A-Z]+(?![^\W\d_A-Z])"
    r"|[A-Z])"
)
"""Pattern of a token, in one group. It splits camelCase and snake_case names of record fields:
`OutdoorSeating`, `business_stars`."""
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
"""Number words that count as the number; the trained models know these."""


class Word(NamedTuple):
    """The forms of a token's text, the same wherever it stands."""

    exact: str
    """Lower case, without a possessive; a number in its shortest spelling."""
    stem: str
    """The same for words that the extended features count as equal."""
    number: bool
    """Whether it is in Arabic numerals."""
    content: bool
    """Whether it is neither a stop word nor a single letter."""


@lru_cache(maxsize=1 << 16)
def read_word(spelling: str) -> Word:
    """Return the forms of a token with that spelling."""
    lower = spelling.lower()
    if lower[0].isdigit():
        exact = _shorten_number(lower)
        return Word(exact=exact, stem=_normalize_clock(lower) or exact, number=True, content=True)
    exact = lower[:-2] if lower.endswith(("'s", "’s")) else lower
    content = exact in NUMBER_WORDS or (len(exact) > 1 and exact not in STOP_WORDS)
    return Word(
        exact=exact,
        stem=NUMBER_WORDS.get(exact) or _build_stemmer().stemWord(exact),
        number=False,
        content=content,
    )


def _shorten_number(number: str) -> str:
    plain = number.replace(",", "").replace(" ", "").replace(".m", "m")
    if re.fullmatch(r"\d+\.\d+", plain):
        plain = plain.rstrip("0").rstrip(".")
    return plain.lstrip("0") or "0"


def _normalize_clock(text: str) -> str | None:
    """Return a time of day as `hours:minutes` of 24 hours, or None: `5 pm` and `17:0` are `17:00`."""
    match = _CLOCK.match(text)
    if match is None or (match[2] is None and match[3] is None):
        return None
    hour = int(match[1])
    if match[3]:
        hour = hour % 12 + (12 if match[3] == "p" else 0)
    return f"{hour}:{int(match[2] or 0):02d}"


@cache
def _build_stemmer() -> Any:
    import Stemmer

    return Stemmer.Stemmer("english")
