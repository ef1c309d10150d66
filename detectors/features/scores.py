"""Scores of trained detectors for a batch, and the thresholds for flags."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from hallulab.detectors.features.batch import Batch
from hallulab.detectors.features.features import Features
from hallulab.detectors.features.tokens import Numbers
from hallulab.scenarios.transcript import Frozen


class LevelThresholds(Frozen):
    """Scores from which a word, a sentence, a reply is flagged."""

    word: float
    """Threshold of a word."""
    sentence: float
    """Threshold of a sentence."""
    response: float
    """Threshold of a reply."""


@dataclass(frozen=True)
class Scores:
    """Scores of a method for a batch. All in [0, 1], higher is worse."""

    batch: Batch
    """The replies judged."""
    features: Features
    """Their measurements."""
    sentences: Numbers
    """(sentences,)"""
    words: Numbers
    """(words,)"""
    replies: Numbers
    """(replies,)"""


def reply_scores(batch: Batch, sentences: Numbers) -> Numbers:
    """Return (replies,): the largest risk of a reply's sentences, for one unsupported sentence is enough."""
    scores = np.zeros(len(batch.cases))
    np.maximum.at(scores, batch.sentences.reply, sentences)
    return scores
