"""Cluster bootstrap of rank statistics. Groups are resampled, with all their items.

A resample is a weight for each group. Items are sorted by score once, and each resample's AUROC and average
precision are cumulative sums of weights. 150,000 words take seconds.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from hallulab.simulator.measure.detection import Sample
from hallulab.simulator.measure.statistics import (
    LEAST_FOR_INTERVAL,
    Floats,
    Integers,
    draw_cluster_weights,
)

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
