"""Tokens of replies and sources as flat arrays, so that a whole batch is one computation."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from hallulab.scenarios.text.words import TOKEN, read_word

Integers = NDArray[np.int64]
Numbers = NDArray[np.float64]
Flags = NDArray[np.bool_]


class Lexicon(dict[str, int]):
    """Numbers the spellings of one batch; equal forms have equal identifiers.

    `lexicon[spelling]` is the spelling's index; a new spelling gets a new one.
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
        """Return a column of `columns`."""
        return self._rows[self[spelling]]

    @property
    def forms(self) -> list[str]:
        """The forms, exact ones and stems, in the order of their identifiers."""
        return list(self._forms)

    def columns(self) -> Integers:
        """Return (5, spellings): exact form, stem, number, content, capital."""
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
    """The matches of a pattern in several texts, one after the other. Arrays have shape (stretches,)."""

    text: Integers
    """Index of the text."""
    start: Integers
    """First character in that text."""
    end: Integers
    """One past the last character."""
    spelling: list[str]
    """The text of the match."""


def find_all(pattern: re.Pattern[str], texts: Sequence[str]) -> Stretches:
    """Find all matches of `pattern`.

    Places are computed from lengths: asking every match takes twice as long.

    Args:
        pattern: with one group, around the whole.
    """
    # For each text: the part before the first stretch, the stretch, the part before the second …, the rest.
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
    """Return the tokens of `texts`, numbered by `lexicon`."""
    found = find_all(TOKEN, texts)
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


def find_content_stems(text: str, lexicon: Lexicon) -> set[int]:
    """Return the identifiers of the stems of a text's content words."""
    rows = [lexicon.row(spelling) for spelling in set(TOKEN.findall(text))]
    return {stem for _, stem, _, content, _ in rows if content}
