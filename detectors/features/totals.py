"""Aggregate token values to sentences, words and replies."""

from __future__ import annotations

import numpy as np

from hallulab.detectors.features.batch import Batch
from hallulab.detectors.features.tokens import Flags, Numbers


def per_sentence(batch: Batch, values: Numbers | Flags) -> Numbers:
    """Sum (tokens,) values to (sentences,)."""
    return np.bincount(batch.token_sentence, weights=values, minlength=len(batch.sentences)).astype(float)


def compute_content_share(batch: Batch, values: Numbers | Flags, weight: Numbers | None = None) -> Numbers:
    """Return (sentences,): weighted mean of (tokens,) values over content words; 1 without any."""
    weights = batch.tokens.content * (np.ones(len(values)) if weight is None else weight)
    return compute_ratio(per_sentence(batch, weights * values), per_sentence(batch, weights), empty=1.0)


def worst_of_word(batch: Batch, values: Numbers | Flags) -> Numbers:
    """Return (words,): largest of (tokens,) values, which are not negative; 0 for a word without tokens."""
    worst = np.zeros(len(batch.words))
    np.maximum.at(worst, batch.token_word, values)
    longer = np.flatnonzero(batch.token_last_word != batch.token_word)
    np.maximum.at(worst, batch.token_last_word[longer], values[longer])
    return worst


def compute_ratio(part: Numbers, whole: Numbers, empty: float) -> Numbers:
    """Return `part / whole`, and `empty` where the whole is 0."""
    shares: Numbers = np.divide(part, whole, out=np.full(len(whole), empty), where=whole > 0)
    return shares
