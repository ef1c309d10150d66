"""Agreement of scores and flags with gold labels, on one sample.

A number that is not defined on a sample is None: there is one class only, nothing is flagged, or scores are
no probabilities. Each item (a reply, a sentence, a word) weighs the same.
"""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from hallulab.simulator.measure.statistics import Floats, Integers

BINS = 10
"""Bins of equal width over [0, 1] in the calibration error and the reliability curve."""

Booleans = NDArray[np.bool_]


@dataclass(frozen=True)
class Sample:
    """Items that a detector scored; all arrays have length n."""

    labels: Booleans
    """Gold: whether the item is hallucinated."""
    scores: Floats
    """The detector's score, higher is worse."""
    flags: Booleans
    """Whether the detector flags the item at its own threshold."""
    clusters: Integers
    """Number of the item's group."""
    probabilities: bool = True
    """Whether the scores are meant as probabilities. Scores outside [0, 1] never are."""

    def only(self, chosen: Booleans) -> Sample:
        """Return the items that a mask of length n chooses."""
        return dataclasses.replace(
            self,
            labels=self.labels[chosen],
            scores=self.scores[chosen],
            flags=self.flags[chosen],
            clusters=self.clusters[chosen],
        )

    def flagged_from(self, threshold: float | None) -> Sample:
        """Return the same items, flagged where the score reaches `threshold`; None flags nothing."""
        flags = np.zeros(len(self.labels), dtype=bool) if threshold is None else self.scores >= threshold
        return dataclasses.replace(self, flags=flags)


@dataclass(frozen=True)
class Curve:
    """Counts at every distinct score, from the highest: items flagged from that score on."""

    thresholds: Floats
    """The distinct scores, falling."""
    hits: Integers
    """Positives with at least that score."""
    flagged: Integers
    """Items with at least that score."""


@dataclass(frozen=True)
class Bin:
    """Items with scores in one bin of the reliability curve."""

    n: int
    """Number of items."""
    score: float
    """Their mean score."""
    positive: float
    """Share of them that is positive."""


def compute_curve(sample: Sample) -> Curve:
    """Count the flagged items and hits at every threshold; empty arrays for an empty sample."""
    order = np.argsort(-sample.scores, kind="stable")
    scores, hits = sample.scores[order], np.cumsum(sample.labels[order])
    last = np.append(np.flatnonzero(np.diff(scores)), len(scores) - 1) if len(scores) else np.array([], int)
    return Curve(scores[last], hits[last].astype(np.int64), (last + 1).astype(np.int64))


def compute_auroc(sample: Sample) -> float | None:
    """Compute the area under the ROC curve: the chance that a positive outscores a negative (ties: half)."""
    from sklearn.metrics import roc_auc_score

    return float(roc_auc_score(sample.labels, sample.scores)) if _is_two_class(sample) else None


def compute_average_precision(sample: Sample) -> float | None:
    """Compute the area under the precision-recall curve, without interpolation; None with one class."""
    from sklearn.metrics import average_precision_score

    return float(average_precision_score(sample.labels, sample.scores)) if _is_two_class(sample) else None


def compute_precision_recall_f1(hits: float, flagged: float, positive: float) -> dict[str, float | None]:
    """Compute these for the positive class; None where a denominator is 0, F1 also where recall is None.

    >>> compute_precision_recall_f1(hits=1, flagged=2, positive=2)
    {'precision': 0.5, 'recall': 0.5, 'f1': 0.5}
    """
    return {
        "precision": hits / flagged if flagged else None,
        "recall": hits / positive if positive else None,
        "f1": 2 * hits / (flagged + positive) if positive else None,
    }


def compute_flag_scores(sample: Sample) -> dict[str, float | None]:
    """Compute precision, recall, F1, balanced accuracy and accuracy of the flags."""
    n, positive = len(sample.labels), int(sample.labels.sum())
    hits = int((sample.labels & sample.flags).sum())
    flagged = int(sample.flags.sum())
    passed = n - positive - flagged + hits
    both = positive and n - positive
    return {
        **compute_precision_recall_f1(hits, flagged, positive),
        "balanced_accuracy": (hits / positive + passed / (n - positive)) / 2 if both else None,
        "accuracy": (hits + passed) / n if n else None,
    }


def find_best_threshold(sample: Sample) -> float | None:
    """Find the threshold with the highest F1, the highest threshold of several; None without positives."""
    positive = int(sample.labels.sum())
    if not positive:
        return None
    found = compute_curve(sample)
    return float(found.thresholds[np.argmax(2 * found.hits / (found.flagged + positive))])


def compute_brier(sample: Sample) -> float | None:
    """Compute the mean squared distance of score and label; None where the scores are no probabilities."""
    from sklearn.metrics import brier_score_loss

    if not _is_probabilistic(sample):
        return None
    return float(brier_score_loss(sample.labels, sample.scores, pos_label=True))


def sort_into_bins(sample: Sample) -> tuple[Bin, ...]:
    """Sort items into `BINS` bins, [0, 0.1), … [0.9, 1]. Empty bins are left out.

    There are none where the scores are no probabilities.
    """
    if not _is_probabilistic(sample):
        return ()
    places = np.minimum((sample.scores * BINS).astype(int), BINS - 1)
    return tuple(
        Bin(int(here.sum()), float(sample.scores[here].mean()), float(sample.labels[here].mean()))
        for here in (places == place for place in range(BINS))
        if here.any()
    )


def compute_calibration_error(sample: Sample) -> float | None:
    """Compute the expected calibration error: mean of |mean score − share positive| of an item's bin."""
    bins = sort_into_bins(sample)
    if not bins:
        return None
    return sum(item.n * abs(item.score - item.positive) for item in bins) / len(sample.labels)


def _is_probabilistic(sample: Sample) -> bool:
    scores = sample.scores
    inside = len(scores) > 0 and bool(scores.min() >= 0.0) and bool(scores.max() <= 1.0)
    return sample.probabilities and inside


def _is_two_class(sample: Sample) -> bool:
    return bool(sample.labels.any()) and not sample.labels.all()
