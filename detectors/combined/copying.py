"""Measure how much of a reply is copied from its evidence: all replies of a batch in one computation."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from hallulab.detectors.features.batch import Batch, Flags, Integers, Numbers, find_all, split_pieces
from hallulab.detectors.features.matching import count_table, find_best_match, mark_held
from hallulab.scenarios.text.page_marks import blank_marks
from hallulab.scenarios.text.spans import split_sentences

COPY_FEATURES = (
    "new_words",  # share of all of the reply's words that the evidence lacks (`lexical`)
    "new_pairs",  # the same of pairs of neighbouring words
    "new_triples",
    "longest_copy",  # most neighbouring pairs that the evidence holds
    "longest_copy_share",  # the same, divided by the number of words
    "words",
    "outside_best",  # share of different words that the best evidence sentence lacks
    "outside_best_two",  # the same for that sentence and the one that adds most to it
)

_WORD = re.compile(r"(\w+)")
"""Pattern for `find_all` of the words that `hallulab.scenarios.text.spans.split_words` returns."""


class _Words(NamedTuple):
    """The words of all passages and replies, one after the other. All arrays have shape (words,)."""

    word: Integers
    """Equal words have equal numbers."""
    text: Integers
    """Index of the passage or reply; no run of words leaves it."""
    source: Integers
    """Index of the source that the word belongs to, or is compared with."""
    piece: Integers
    """Index of the evidence sentence, or of the reply."""
    said: Flags
    """True if it belongs to a reply."""


class _WordRuns(NamedTuple):
    """Runs of equally many words. All arrays have shape (runs,)."""

    number: Integers
    """Two runs have the same number if they are equal and of one source."""
    piece: Integers
    said: Flags

    def new(self) -> Flags:
        """Return (runs of replies,): whether the evidence lacks the run."""
        known = np.zeros(int(self.number.max(initial=-1)) + 1, dtype=bool)
        known[self.number[~self.said]] = True
        return ~known[self.number[self.said]]

    def owner(self) -> Integers:
        """Return (runs of replies,): index of the reply."""
        return self.piece[self.said]


def measure_copying(batch: Batch) -> Numbers:
    """Return the copy features of each reply, (replies, COPY_FEATURES)."""
    replies = len(batch.cases)
    by_length = list(_find_runs(_read(batch), 3))
    new = [runs.new() for runs in by_length]
    owners = [runs.owner() for runs in by_length]
    counts = [np.bincount(owner, minlength=replies).astype(float) for owner in owners]
    shares = [
        np.bincount(owner, flags, replies) / np.maximum(count, 1)
        for owner, flags, count in zip(owners, new, counts, strict=True)
    ]
    longest, count = _longest(~new[1], owners[1], replies), counts[0]
    return np.column_stack(
        [*shares, longest, longest / np.maximum(count, 1), count, *_outside(by_length[0], replies)]
    )


def _find_runs(found: _Words, most: int) -> Iterator[_WordRuns]:
    """Yield the runs of 1 to `most` words; the numbers of one length give those of the next."""
    width = int(found.word.max(initial=0)) + 1
    at, number = np.arange(len(found.word)), found.source
    for last in range(most):
        whole = np.flatnonzero(at + last < len(found.word))
        whole = whole[found.text[at[whole]] == found.text[at[whole] + last]]
        at = at[whole]
        number = np.unique(number[whole] * width + found.word[at + last], return_inverse=True)[1]
        yield _WordRuns(number, found.piece[at], found.said[at])


class _Numbering(dict[str, int]):
    """Numbers words; words that differ only in case have the same number."""

    def __init__(self) -> None:
        super().__init__()
        self._forms: dict[str, int] = {}

    def __missing__(self, spelling: str) -> int:
        number = self[spelling] = self._forms.setdefault(spelling.lower(), len(self._forms))
        return number


def _read(batch: Batch) -> _Words:
    cases = list(zip(batch.cases, batch.source.tolist(), strict=True))
    sources = {source: case.passages for case, source in cases}
    passages = [(source, passage.text) for source, given in sources.items() for passage in given]
    found = find_all(
        _WORD,
        [
            *(text for _, text in passages),
            *(blank_marks(case.reply, list_numbers=False) for case, _ in cases),
        ],
    )
    numbers = map(_Numbering().__getitem__, found.spelling)
    said = found.text >= len(passages)
    source = np.concatenate([np.array([source for source, _ in passages], dtype=np.int64), batch.source])
    parts = split_pieces([split_sentences(text) for _, text in passages])
    return _Words(
        word=np.fromiter(numbers, np.int64, count=len(found.spelling)),
        text=found.text,
        source=source[found.text],
        piece=np.where(said, found.text - len(passages), parts.holding(found.text, found.start)),
        said=said,
    )


def _longest(kept: Flags, owner: Integers, owners: int) -> Numbers:
    """Return (owners,): the longest row of neighbours that are kept.

    Args:
        kept: (rows,).
        owner: (rows,), in order.
    """
    index = np.arange(len(owner))
    before = np.maximum.accumulate(np.where(kept, np.searchsorted(owner, owner) - 1, index))
    longest = np.zeros(owners)
    np.maximum.at(longest, owner, index - before)
    return longest


def _outside(singles: _WordRuns, replies: int) -> tuple[Numbers, Numbers]:
    """Return the shares of a reply's different words outside the best sentence, and outside the best two.

    Both have shape (replies,).
    """
    term, piece, said = singles
    terms, known = int(term.max(initial=-1)) + 1, int(piece[~said].max(initial=-1)) + 1
    ours = mark_held(count_table(piece[said], term[said], replies, terms))
    theirs = mark_held(count_table(piece[~said], term[~said], known, terms))
    different = np.diff(ours.indptr).astype(float)
    best = find_best_match(ours @ theirs.T, np.ones(replies))
    matched = np.flatnonzero(best.chunk >= 0)
    rest = ours[matched] - ours[matched].multiply(theirs[best.chunk[matched]])
    more = np.zeros(replies)
    more[matched] = find_best_match(rest @ theirs.T, np.ones(len(matched))).score
    outside = [different - best.score, different - best.score - more]
    first, second = (left / np.maximum(different, 1) for left in outside)
    return first, second
