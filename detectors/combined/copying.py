"""How much of a reply is copied from its evidence: all replies of a batch in one computation."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from detectors.evidence_chain.batch import Batch
from detectors.evidence_chain.matching import best_match
from detectors.evidence_chain.tokens import Flags, Integers, Numbers
from detectors.spans import sentences, words

COPY_FEATURES = (
    "new_words",  # share of the reply's words, all of them, that the evidence does not hold (`lexical`)
    "new_pairs",  # the same of pairs of neighbouring words
    "new_triples",
    "longest_copy",  # most pairs one after the other that the evidence holds
    "longest_copy_share",  # the same by the number of words
    "words",
    "outside_best",  # share of different words that the best evidence sentence does not hold
    "outside_best_two",  # the same of that sentence and the one that adds most to it
)
"""Of a reply."""


class _Words(NamedTuple):
    """The words of all passages and replies, one after the other. All arrays have shape (words,)."""

    word: Integers
    """Equal words have equal numbers."""
    text: Integers
    """Index of the passage or reply; no run of words leaves it."""
    source: Integers
    """Index of the source that it is of, or is compared with."""
    piece: Integers
    """Index of the evidence sentence, or of the reply."""
    said: Flags
    """Whether it is a reply's."""


def copying(batch: Batch) -> Numbers:
    """(replies, COPY_FEATURES)."""
    replies, found = len(batch.cases), _read(batch)
    width = int(found.word.max(initial=0)) + 1
    at, run = np.arange(len(found.word)), found.source
    shares: list[Numbers] = []
    longest, outside = np.zeros(replies), (np.zeros(replies), np.zeros(replies))
    for length in (1, 2, 3):
        whole = np.flatnonzero(at + length <= len(found.word))
        whole = whole[found.text[at[whole]] == found.text[at[whole] + length - 1]]
        at = at[whole]
        run = np.unique(run[whole] * width + found.word[at + length - 1], return_inverse=True)[1]
        said, piece = found.said[at], found.piece[at]
        known = np.zeros(int(run.max(initial=-1)) + 1, dtype=bool)
        known[run[~said]] = True
        new, owner = ~known[run[said]], piece[said]
        shares.append(np.bincount(owner, new, replies) / np.maximum(np.bincount(owner, minlength=replies), 1))
        if length == 1:
            outside = _outside(run, piece, said, replies)
        if length == 2:
            longest = _longest(~new, owner, replies)
    count = np.bincount(found.piece[found.said], minlength=replies).astype(float)
    return np.column_stack([*shares, longest, longest / np.maximum(count, 1), count, *outside])


def _read(batch: Batch) -> _Words:
    sources: dict[int, tuple[str, ...]] = {}
    for case, source in zip(batch.cases, batch.source.tolist(), strict=True):
        sources.setdefault(source, tuple(passage.text for passage in case.passages))
    passages = [(source, text) for source, texts in sources.items() for text in texts]
    pieces = [
        (words(region.of(text)), position, source, False)
        for position, (source, text) in enumerate(passages)
        for region in sentences(text)
    ]
    evidence = len(pieces)
    pieces += [
        (words(case.reply), len(passages) + position, source, True)
        for position, (case, source) in enumerate(zip(batch.cases, batch.source.tolist(), strict=True))
    ]
    numbers: dict[str, int] = {}
    lengths = [len(piece[0]) for piece in pieces]
    text, source, said = (
        np.repeat(np.array([piece[column] for piece in pieces], dtype=kind), lengths)
        for column, kind in ((1, int), (2, int), (3, bool))
    )
    piece = np.repeat(np.arange(len(pieces)), lengths)
    return _Words(
        word=np.array([numbers.setdefault(word, len(numbers)) for piece in pieces for word in piece[0]], int),
        text=text,
        source=source,
        piece=piece - evidence * said,
        said=said,
    )


def _longest(kept: Flags, owner: Integers, owners: int) -> Numbers:
    """(owners,): most rows one after the other that are kept.

    Args:
        kept: (rows,).
        owner: (rows,), in order.
    """
    index = np.arange(len(owner))
    before = np.maximum.accumulate(np.where(kept, np.searchsorted(owner, owner) - 1, index))
    longest = np.zeros(owners)
    np.maximum.at(longest, owner, index - before)
    return longest


def _outside(term: Integers, piece: Integers, said: Flags, replies: int) -> tuple[Numbers, Numbers]:
    """(replies,) twice: the shares of a reply's different words outside the best sentence, and best two.

    Args:
        term: (words,): equal words of one source have equal numbers, and no others.
        piece: (words,): index of the evidence sentence or the reply.
        said: (words,): whether it is a reply's.
        replies: how many there are.
    """
    terms = int(term.max(initial=-1)) + 1
    ours = _held(piece[said], term[said], replies, terms)
    theirs = _held(piece[~said], term[~said], int(piece[~said].max(initial=-1)) + 1, terms)
    different = np.diff(ours.indptr).astype(float)
    best = best_match(ours @ theirs.T, np.ones(replies))
    matched = np.flatnonzero(best.chunk >= 0)
    rest = ours[matched] - ours[matched].multiply(theirs[best.chunk[matched]])
    more = np.zeros(replies)
    more[matched] = best_match(rest @ theirs.T, np.ones(len(matched))).score
    outside = [different - best.score, different - best.score - more]
    first, second = (left / np.maximum(different, 1) for left in outside)
    return first, second


def _held(row: Integers, column: Integers, rows: int, columns: int) -> Any:
    """Sparse (rows, columns): 1 where the row holds the column."""
    from scipy.sparse import csr_array

    table = csr_array((np.ones(len(row)), (row, column)), shape=(rows, columns))
    table.sum_duplicates()
    table.data[:] = 1.0
    return table
