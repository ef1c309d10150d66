"""Agreement of scores and flags with gold labels on one sample, and its cluster bootstrap.

Cluster bootstrap of rank statistics. Groups are resampled, with all their items.
A resample is a weight for each group. Items are sorted by score once, and each resample's AUROC and average
precision are cumulative sums of weights. 150,000 words take seconds.

Agreement of scores and flags with gold labels, on one sample.
A number that is not defined on a sample is None: there is one class only, nothing is flagged, or scores are
no probabilities. Each item (a reply, a sentence, a word) weighs the same.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from hallulab.simulator.statistics.intervals import LEAST_FOR_INTERVAL, Floats, Integers, draw_cluster_weights

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
    score: float
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


RESAMPLES = 1_000
"""Bootstrap samples of rank statistics."""
_CELLS = 1_000_000
"""Largest number of sums of weights in memory at once."""

Replicates = Mapping[str, Floats]
"""Name of a number → its values in the resamples; NaN where a resample leaves it undefined."""


def compute_replicates(sample: Sample, clusters: int) -> Replicates:
    """Compute `auroc`, `auprc`, `f1` and `balanced_accuracy` in each of `RESAMPLES` resamples of the groups.

    All are NaN where fewer than `LEAST_FOR_INTERVAL` groups have items. `auroc` and `balanced_accuracy` are
    NaN where fewer groups than that have positives, or negatives.

    Args:
        clusters: number of groups, those without items included; `sample.clusters` are their numbers.
    """
    nothing = np.full(RESAMPLES, np.nan)
    if _is_too_few(sample.clusters):
        return dict.fromkeys(("auroc", "auprc", "f1", "balanced_accuracy"), nothing)
    weights = draw_cluster_weights(clusters, RESAMPLES)
    with np.errstate(invalid="ignore", divide="ignore"):
        drawn = {
            **_compute_score_replicates(sample, weights),
            **_compute_flag_replicates(sample, weights, clusters),
        }
    if any(_is_too_few(sample.clusters[chosen]) for chosen in (sample.labels, ~sample.labels)):
        drawn |= dict.fromkeys(("auroc", "balanced_accuracy"), nothing)
    return drawn


def compute_f1_replicates(
    counts: Sequence[tuple[int, int, int]], groups: Sequence[int], clusters: int
) -> Floats:
    """Compute F1 of summed (hits, flagged, gold) in each resample; NaN where a resample has no gold.

    All are NaN where the counts come from fewer than `LEAST_FOR_INTERVAL` groups.

    Args:
        groups: number of the group of each of `counts`.
        clusters: number of groups, those without counts included.
    """
    places = np.asarray(groups, dtype=np.int64)
    if _is_too_few(places):
        return np.full(RESAMPLES, np.nan)
    sums = np.zeros((clusters, 3))
    np.add.at(sums, places, np.asarray(counts, dtype=float))
    return _compute_f1(*(draw_cluster_weights(clusters, RESAMPLES) @ sums).T)


def _is_too_few(clusters: Integers) -> bool:
    return len(np.unique(clusters)) < LEAST_FOR_INTERVAL


def _compute_f1(hits: Floats, flagged: Floats, gold: Floats) -> Floats:
    with np.errstate(invalid="ignore", divide="ignore"):
        return np.where(gold > 0, 2 * hits / (flagged + gold), np.nan)


def _compute_flag_replicates(sample: Sample, weights: Integers, clusters: int) -> dict[str, Floats]:
    columns = (sample.labels & sample.flags, sample.flags, sample.labels, np.ones(len(sample.labels)))
    sums = np.stack([np.bincount(sample.clusters, column, clusters) for column in columns], axis=1)
    hits, flagged, positive, total = (weights @ sums).T
    negative = total - positive
    return {
        "f1": _compute_f1(hits, flagged, positive),
        "balanced_accuracy": (hits / positive + (negative - flagged + hits) / negative) / 2,
    }


def _compute_score_replicates(sample: Sample, weights: Integers) -> dict[str, Floats]:
    from scipy.sparse import csr_array

    rank = _rank_coarsely(sample)
    shape = (int(rank.max()) + 1, weights.shape[1])
    positive, negative = (
        csr_array((chosen.astype(np.float64), (rank, sample.clusters)), shape=shape)
        for chosen in (sample.labels, ~sample.labels)
    )
    step = max(1, _CELLS // shape[0])
    found = []
    for at in range(0, len(weights), step):
        drawn = np.ascontiguousarray(weights[at : at + step].T, dtype=np.float64)
        found.append(_compute_areas(positive @ drawn, negative @ drawn))
    return {
        "auroc": np.concatenate([areas[0] for areas in found]),
        "auprc": np.concatenate([areas[1] for areas in found]),
    }


def _rank_coarsely(sample: Sample) -> Integers:
    """Rank each item, 0 for the highest score; neighbouring scores without a positive share a rank.

    This changes neither area. Where positives are rare, there are far fewer ranks than scores.
    """
    scores, rank = np.unique(-sample.scores, return_inverse=True)
    positive = np.bincount(rank, sample.labels, len(scores)) > 0
    begins = positive | np.append(True, positive[:-1])
    ranks: Integers = (np.cumsum(begins) - 1)[rank]
    return ranks


def _compute_areas(hits: Floats, misses: Floats) -> tuple[Floats, Floats]:
    """Compute AUROC and average precision from weights of shape (scores, resamples), highest score first."""
    all_hits, all_misses = np.cumsum(hits, axis=0), np.cumsum(misses, axis=0)
    positives, negatives = all_hits[-1], all_misses[-1]
    area = (hits * (negatives - all_misses + misses / 2)).sum(axis=0) / (positives * negatives)
    reached = np.maximum(all_hits + all_misses, 1.0)
    precision = (hits * (all_hits / reached)).sum(axis=0) / positives
    return area, np.where(negatives > 0, precision, np.nan)
