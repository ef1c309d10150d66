"""Agreement of scores and flags with gold labels on one sample, and intervals over its groups.

A number that is not defined on a sample is None: there is one class only, nothing is flagged, or scores are
no probabilities. Each item (a reply, a sentence, a word) weighs the same.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from hallulab.simulator.statistics.intervals import (
    LEAST_FOR_INTERVAL,
    Bounds,
    Floats,
    Integers,
    compute_share_interval,
)

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
    """True if the detector flags the item at its own threshold."""
    clusters: Integers
    """Number of the item's group."""
    probabilities: bool = True
    """True if the scores are meant as probabilities. Scores outside [0, 1] never are."""

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


BLOCKS = 200
"""Most parts of the groups that are left out in turn. Of more groups, several are left out together (a
delete-a-group jackknife), which takes a fraction of the time and no degree of freedom that counts."""
_CELLS = 1_000_000
"""Largest number of sums of weights in memory at once."""

LeftOut = Mapping[str, Floats]
"""Name of a number → its values without each block of groups in turn; NaN where undefined."""


def leave_out_groups(sample: Sample) -> LeftOut:
    """Compute `auroc`, `auprc`, `f1` and `balanced_accuracy` without each block of groups in turn.

    Equal groups give equal blocks, so the values of two detectors on the same items are paired. All are NaN
    with fewer than `LEAST_FOR_INTERVAL` groups. `auroc` and `balanced_accuracy` are NaN where fewer groups
    than that have positives, or negatives.
    """
    blocks, number = _join_groups(sample.clusters)
    nothing = np.full(number, np.nan)
    if _is_too_few(sample.clusters):
        return dict.fromkeys(("auroc", "auprc", "f1", "balanced_accuracy"), nothing)
    with np.errstate(invalid="ignore", divide="ignore"):
        found = {**_leave_out_scores(sample, blocks, number), **_leave_out_flags(sample, blocks, number)}
    if any(_is_too_few(sample.clusters[chosen]) for chosen in (sample.labels, ~sample.labels)):
        found |= dict.fromkeys(("auroc", "balanced_accuracy"), nothing)
    return found


def compute_detection_intervals(
    sample: Sample, numbers: Mapping[str, float | None], left_out: LeftOut
) -> dict[str, Bounds | None]:
    """Compute the interval of each number that has values in `left_out`; None where it has none.

    Groups with positives count, or those with negatives if these are fewer: of a hundred groups, a few with
    positives say no more than as many.
    """
    trials = min(len(np.unique(sample.clusters[chosen])) for chosen in (sample.labels, ~sample.labels))
    found: dict[str, Bounds | None] = {}
    for name, values in left_out.items():
        number = numbers[name]
        found[name] = None if number is None else compute_share_interval(number, values, trials)
    return found


def compute_f1_interval(counts: Sequence[tuple[int, int, int]], groups: Sequence[int]) -> Bounds | None:
    """Compute the interval of F1 of summed (hits, flagged, gold); None without gold in all of them but one.

    None also where the counts come from fewer than `LEAST_FOR_INTERVAL` groups.

    Args:
        groups: number of the group of each of `counts`.
    """
    places = np.asarray(groups, dtype=np.int64)
    if _is_too_few(places):
        return None
    blocks, number = _join_groups(places)
    sums = np.zeros((number, 3))
    np.add.at(sums, blocks, np.asarray(counts, dtype=float))
    total = sums.sum(axis=0)
    left_out = _compute_f1(*(total - sums).T)
    return compute_share_interval(float(_compute_f1(*total)), left_out, len(np.unique(places)))


def _join_groups(clusters: Integers) -> tuple[Integers, int]:
    """Return the block of each item, and the number of blocks."""
    present, place = np.unique(clusters, return_inverse=True)
    return place % BLOCKS, min(len(present), BLOCKS)


def _is_too_few(clusters: Integers) -> bool:
    return len(np.unique(clusters)) < LEAST_FOR_INTERVAL


def _compute_f1(hits: Floats, flagged: Floats, gold: Floats) -> Floats:
    with np.errstate(invalid="ignore", divide="ignore"):
        return np.where(gold > 0, 2 * hits / (flagged + gold), np.nan)


def _leave_out_flags(sample: Sample, blocks: Integers, number: int) -> dict[str, Floats]:
    columns = (sample.labels & sample.flags, sample.flags, sample.labels, np.ones(len(sample.labels)))
    sums = np.stack([np.bincount(blocks, column, number) for column in columns], axis=1)
    hits, flagged, positive, total = (sums.sum(axis=0) - sums).T
    negative = total - positive
    return {
        "f1": _compute_f1(hits, flagged, positive),
        "balanced_accuracy": (hits / positive + (negative - flagged + hits) / negative) / 2,
    }


def _leave_out_scores(sample: Sample, blocks: Integers, number: int) -> dict[str, Floats]:
    rank = _rank_coarsely(sample)
    ranks = int(rank.max()) + 1
    step = max(1, _CELLS // ranks)
    found = []
    for start in range(0, number, step):
        kept = [blocks != block for block in range(start, min(start + step, number))]
        hits, misses = (
            np.stack([np.bincount(rank[keep & chosen], minlength=ranks) for keep in kept], axis=1)
            for chosen in (sample.labels, ~sample.labels)
        )
        found.append(_compute_areas(hits.astype(np.float64), misses.astype(np.float64)))
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
    """Compute AUROC and average precision from counts of shape (scores, samples), highest score first."""
    all_hits, all_misses = np.cumsum(hits, axis=0), np.cumsum(misses, axis=0)
    positives, negatives = all_hits[-1], all_misses[-1]
    area = (hits * (negatives - all_misses + misses / 2)).sum(axis=0) / (positives * negatives)
    reached = np.maximum(all_hits + all_misses, 1.0)
    precision = (hits * (all_hits / reached)).sum(axis=0) / positives
    return area, np.where(negatives > 0, precision, np.nan)
