"""Measure the inputs of the classifiers: EvidenceChain's features, and how much of a reply is copied.

Inputs of a word: EvidenceChain's word features (extended set), those of its sentence, and the task. Of a
sentence: its features and the task. Of a reply: mean, largest and smallest of each sentence feature, the
task, `COPY_FEATURES`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from hallulab.detectors.combined.copying import measure_copying
from hallulab.detectors.features.batch import Batch, ReplyWithEvidence, make_batch
from hallulab.detectors.features.features import Features, measure
from hallulab.detectors.features.matching import DocumentFrequency
from hallulab.detectors.features.tokens import Flags, Integers, Numbers

TASKS = ("qa", "summary", "data2txt")
"""See `task_of`; each is an input of its own."""

CERTAIN = (0.05, 0.1, 0.2, 0.3, 0.5)
"""Word scores; for each, the words of a reply that reach it are counted."""

WORST = (3, 5, 10, 20)
"""Scores are averaged over this many worst words."""


@dataclass(frozen=True)
class FeatureInputs:
    """The inputs of the classifiers."""

    batch: Batch
    """The replies measured."""
    features: Features
    """EvidenceChain's features, extended set."""
    sentences: Numbers
    """(sentences, inputs)"""
    replies: Numbers
    """(replies, inputs), without the inputs from word scores."""

    def words(self, rows: Flags | slice) -> Numbers:
        """Return (rows, inputs) of some of the words.

        Raises:
            ValueError: there are no features of words.
        """
        if self.features.words is None:
            raise ValueError("the extended features are needed")
        owner = self.batch.word_sentence[rows]
        return np.hstack([self.features.words[rows], self.sentences[owner]])


def measure_all(cases: Sequence[ReplyWithEvidence], frequency: DocumentFrequency) -> FeatureInputs:
    """Measure words, sentences and replies."""
    batch = make_batch(cases)
    return measure_batch(batch, measure(batch, frequency, "extended"))


def measure_batch(batch: Batch, features: Features) -> FeatureInputs:
    """Measure from EvidenceChain's features of the extended set."""
    task = np.array([[float(case.task == name) for name in TASKS] for case in batch.cases]).reshape(-1, 3)
    of_sentences = np.hstack([features.sentences, task[batch.sentences.reply]])
    summaries = mean_max_min(features.sentences, batch.sentences.reply, len(batch.cases))
    return FeatureInputs(
        batch=batch,
        features=features,
        sentences=of_sentences,
        replies=np.hstack([summaries, task, measure_copying(batch)]),
    )


def mean_max_min(values: Numbers, owner: Integers, owners: int) -> Numbers:
    """Return (owners, 3 × columns): mean, largest and smallest of each column over the rows of each owner.

    An owner without rows has 0.

    Args:
        values: (rows, columns).
        owner: (rows,), ascending.
        owners: how many there are.
    """
    present, first, rows = np.unique(owner, return_index=True, return_counts=True)
    found: Numbers = np.zeros((owners, 3 * values.shape[1]))
    if present.size:
        total, largest, smallest = (
            reduce.reduceat(values, first, axis=0) for reduce in (np.add, np.maximum, np.minimum)
        )
        found[present] = np.hstack([total / rows[:, None], largest, smallest])
    return found


def of_word_scores(scores: Numbers, reply: Integers, replies: int) -> Numbers:
    """Return (replies, inputs): how many words of a reply are bad, and how bad the worst ones are.

    Args:
        scores: (words,), in [0, 1].
        reply: (words,): index of the word's reply.
        replies: how many there are.
    """
    doubt = np.bincount(reply, -np.log1p(-np.minimum(scores, 0.999)), replies)
    counts = [np.bincount(reply, scores >= level, replies) for level in CERTAIN]
    order = np.lexsort((-scores, reply))
    worst_first, owner = scores[order], reply[order]
    rank = np.arange(len(owner)) - np.searchsorted(owner, owner)
    size = np.bincount(reply, minlength=replies)
    means = [
        np.bincount(owner, worst_first * (rank < most), replies) / np.maximum(np.minimum(size, most), 1)
        for most in WORST
    ]
    return np.column_stack(
        [mean_max_min(scores[:, None], reply, replies), doubt, np.log1p(doubt), *means, *counts, size]
    )
