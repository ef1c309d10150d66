"""Tokens of replies and sources as flat arrays, so that a whole batch is one computation.

The paper names "deterministic tokenization", stop words, capitalised entities and Arabic numerals (Method,
Limitations), not how; here a token is a number (`1,250.50`, `17:30`), a clock time with am or pm (`5 PM`), or
a run of letters. Two forms of each token are compared: `exact` (lower case; numbers without thousands
separators and trailing zeros) and `stem` (English Snowball stem; number words as digits, clock times on
24 hours).
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache, lru_cache
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

Integers = NDArray[np.int64]
Numbers = NDArray[np.float64]
Flags = NDArray[np.bool_]

_TOKEN = re.compile(
    r"(\d{1,2}(?::\d{1,2})?[ ]?[aApP]\.?[mM]\b"
    r"|\d+(?:[.,:]\d+)*"
    r"|[A-Z]?[^\W\d_A-Z]+(?:['’][^\W\d_]+)?"
    r"|[A-Z]+(?![^\W\d_A-Z])"
    r"|[A-Z])"
)
"""camelCase and snake_case names of record fields come apart: `OutdoorSeating`, `business_stars`."""
_CLOCK = re.compile(r"(\d{1,2})(?::(\d{1,2}))?(?: ?([ap])\.?m)?\Z")
_NUMBER_WORDS = {
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


class Lexicon(dict[str, int]):
    """Numbers the spellings of one batch; equal forms of them have equal identifiers.

    `lexicon[spelling]` is the spelling's index, of one that is new, too.
    """

    def __init__(self) -> None:
        super().__init__()
        self._forms: dict[str, int] = {}
        self._rows: list[tuple[int, int, bool, bool, bool]] = []

    def __missing__(self, spelling: str) -> int:
        word = read_word(spelling)
        index = self[spelling] = len(self._rows)
        exact, stem = (self._forms.setdefault(form, len(self._forms)) for form in (word.exact, word.stem))
        self._rows.append((exact, stem, word.number, word.content, spelling[0].isupper()))
        return index

    def row(self, spelling: str) -> tuple[int, int, bool, bool, bool]:
        """A column of `columns`."""
        return self._rows[self[spelling]]

    @property
    def forms(self) -> list[str]:
        """The forms, exact ones and stems, in the order of their identifiers."""
        return list(self._forms)

    def columns(self) -> Integers:
        """(5, spellings): exact form, stem, number, content, capital."""
        return np.ascontiguousarray(np.array(self._rows, dtype=np.int64).reshape(-1, 5).T)


@dataclass(frozen=True)
class Tokens:
    """The tokens of several texts, one after the other. All arrays have shape (tokens,)."""

    text: Integers
    """Index of the text."""
    start: Integers
    """First character in that text."""
    end: Integers
    """One past the last character."""
    exact: Integers
    """Identifier of the exact form."""
    stem: Integers
    """Identifier of the stem."""
    number: Flags
    """Whether it is a number."""
    content: Flags
    """Whether it is a content word or a number."""
    capital: Flags
    """Whether it begins with a capital letter."""


class Stretches(NamedTuple):
    """What a pattern finds in several texts, one after the other. Arrays have shape (stretches,)."""

    text: Integers
    """Index of the text."""
    start: Integers
    """First character in that text."""
    end: Integers
    """One past the last character."""
    spelling: list[str]
    """What stands there."""


def find_all(pattern: re.Pattern[str], texts: Sequence[str]) -> Stretches:
    """All that `pattern` finds. Places follow from lengths, as asking every match takes twice as long.

    Args:
        pattern: with one group, around the whole.
    """
    # Of each text: what stands before the first stretch, that, what stands before the second …, and the rest.
    split = [pattern.split(text) for text in texts]
    parts = [part for found in split for part in found[:-1]]
    counts = np.array([len(found) // 2 for found in split], dtype=np.int64)
    lengths = np.fromiter(map(len, parts), dtype=np.int64, count=len(parts))
    edges = np.cumsum(lengths).reshape(-1, 2)
    first = np.cumsum(counts) - counts
    before = np.concatenate([[0], edges[:, 1]])[first]
    start, end = (edges - np.repeat(before, counts)[:, None]).T
    return Stretches(np.repeat(np.arange(len(texts), dtype=np.int64), counts), start, end, parts[1::2])


def tokenize(texts: Sequence[str], lexicon: Lexicon) -> Tokens:
    """The tokens of `texts`, numbered by `lexicon`."""
    found = find_all(_TOKEN, texts)
    index = np.fromiter(map(lexicon.__getitem__, found.spelling), np.int64, count=len(found.spelling))
    exact, stem, number, content, capital = lexicon.columns()
    return Tokens(
        text=found.text,
        start=found.start,
        end=found.end,
        exact=exact[index],
        stem=stem[index],
        number=number.astype(bool)[index],
        content=content.astype(bool)[index],
        capital=capital.astype(bool)[index],
    )


def content_stems(text: str, lexicon: Lexicon) -> set[int]:
    """Identifiers of the stems of a text's content words."""
    rows = [lexicon.row(spelling) for spelling in set(_TOKEN.findall(text))]
    return {stem for _, stem, _, content, _ in rows if content}


@lru_cache(maxsize=1 << 16)
def read_word(spelling: str) -> Word:
    """What is known of a token of that spelling."""
    lower = spelling.lower()
    if lower[0].isdigit():
        exact = _shortest_number(lower)
        return Word(exact=exact, stem=_clock(lower) or exact, number=True, content=True)
    exact = lower[:-2] if lower.endswith(("'s", "’s")) else lower
    content = exact in _NUMBER_WORDS or (len(exact) > 1 and exact not in _stop_words())
    return Word(
        exact=exact,
        stem=_NUMBER_WORDS.get(exact) or _stemmer().stemWord(exact),
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
