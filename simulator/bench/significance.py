"""Differences between detectors: paired intervals, Friedman's test for three or more, Wilcoxon's for two.

Friedman's test over sources: a source (group) is a block. In each block, detectors are ranked by their mean
squared error (score − label)², the source's Brier score, over the replies that all of them scored. Detectors
whose scores are no probabilities have no such error and are left out. The p-value comes from the chi-squared
distribution, which is accurate for more than ten sources.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import reduce
from itertools import combinations
from typing import Literal

import numpy as np

from hallulab.scenarios.transcript import Frozen
from hallulab.simulator.bench.levels import Items, Level
from hallulab.simulator.statistics.detection import (
    LeftOut,
    Sample,
    compute_auroc,
    compute_average_precision,
    compute_brier,
    compute_flag_scores,
    leave_out_groups,
)
from hallulab.simulator.statistics.intervals import (
    Floats,
    Integers,
    Interval,
    Rounded,
    compute_jackknife_error,
    compute_plain_interval,
    compute_t_p_value,
)

FEWEST = 3
"""Detectors, and sources or conversations, below which there is no test."""
_MOST_EXACT = 500
"""Largest number of differing pairs with an exact signed-rank test, which then takes half a second."""


class RankTest(Frozen):
    """Friedman's test by chi-squared; None where no block tells any two detectors apart."""

    statistic: Rounded | None
    p_value: float | None
    mean_ranks: dict[str, Rounded]


class SourceTest(RankTest):
    """The test over sources; the least error has rank 1."""

    level: Literal["response"] = "response"
    error: Literal["brier"] = "brier"
    n: int
    groups: int


def run_friedman_test(measured: Mapping[str, Items]) -> SourceTest | None:
    """Run the test over sources on what all scored at response level; None with too few of either."""
    compared = {name: items for name, items in measured.items() if compute_brier(items.sample) is not None}
    if len(compared) < FEWEST:
        return None
    shared = reduce(np.intersect1d, (items.replies for items in compared.values()))
    errors = np.array([_compute_source_errors(items, shared) for items in compared.values()])
    sources = errors.shape[1]
    if sources < FEWEST:
        return None
    found = run_rank_test(dict(zip(compared, errors, strict=True)))
    return SourceTest(n=len(shared), groups=sources, **dict(found))


def run_rank_test(losses: Mapping[str, Floats]) -> RankTest:
    """Run Friedman's test on losses of at least `FEWEST` detectors in each block; the least has rank 1."""
    from scipy.stats import friedmanchisquare, rankdata

    table = np.array(list(losses.values()))
    ranks: Floats = rankdata(table, axis=0)
    differ = bool((ranks != ranks[0]).any())
    found = friedmanchisquare(*table) if differ else None
    return RankTest(
        statistic=None if found is None else found.statistic,
        p_value=None if found is None else float(f"{found.pvalue:.6g}"),
        mean_ranks=dict(zip(losses, ranks.mean(axis=1), strict=True)),
    )


def _compute_source_errors(items: Items, shared: Integers) -> Floats:
    """Return the mean squared error on the shared replies, for each source that has any."""
    sample = items.sample.only(np.isin(items.replies, shared))
    squared = (sample.scores - sample.labels) ** 2
    _, place = np.unique(sample.clusters, return_inverse=True)
    means: Floats = np.bincount(place, squared) / np.bincount(place)
    return np.round(means, 12)


def compute_wilcoxon_p(first: Sequence[float], second: Sequence[float]) -> float | None:
    """Compute the two-sided p-value of the signed-rank test, without equal pairs; None if all are equal.

    Equal differences share the mean of their ranks. Given these ranks, the p-value is exact: twice the
    smaller tail of the sum of positive ranks over all 2^n equally likely patterns of signs, at most 1
    (Wilcoxon 1945; with ties Hollander and Wolfe, Nonparametric Statistical Methods, section 3.1). Shares of
    few hallucinations are mostly ties, for which the p-values of the normal approximation are too small.
    scipy uses it there from n = 14 on. We use it beyond `_MOST_EXACT` pairs, where the exact sum would need
    seconds.
    """
    from scipy.stats import rankdata, wilcoxon

    differences = np.array([round(a - b, 12) for a, b in zip(first, second, strict=True)])
    differences = differences[differences != 0]
    if not len(differences):
        return None
    if len(differences) > _MOST_EXACT:
        return float(wilcoxon(differences).pvalue)
    doubled = np.rint(2 * rankdata(np.abs(differences))).astype(np.int64)
    return _compute_signed_rank_p(doubled, int(doubled[differences > 0].sum()))


def _compute_signed_rank_p(ranks: Integers, positive: int) -> float:
    """Return twice the smaller tail, at `positive`, of the sum of a random subset of `ranks` (whole)."""
    chances = np.ones(1)
    for rank in np.sort(ranks):
        halves = chances / 2
        chances = np.pad(halves, (0, rank))
        chances[rank:] += halves
    return min(1.0, 2 * float(min(chances[: positive + 1].sum(), chances[positive:].sum())))


Metric = Literal["auroc", "auprc", "f1"]
_COMPARED: tuple[Metric, ...] = ("auroc", "auprc", "f1")


class DetectorDifference(Frozen):
    """Two detectors on the items that both scored."""

    level: Level
    metric: Metric
    a: str
    b: str
    n: int
    difference: Rounded | None
    ci95: Interval
    p_value: float | None = None
    """Two-sided t test with the interval's error, not adjusted; None without an interval."""


class Jackknife:
    """The numbers of a level's samples without each group, each computed once."""

    def __init__(self) -> None:
        self._made: dict[tuple[str, bytes], LeftOut] = {}

    def leave_out(self, detector: str, items: Items) -> LeftOut:
        """Return the numbers of a detector's items."""
        key = (detector, items.places.tobytes())
        if key not in self._made:
            self._made[key] = leave_out_groups(items.sample)
        return self._made[key]


def compute_differences(
    level: Level, measured: Mapping[str, Items], jackknife: Jackknife
) -> list[DetectorDifference]:
    """Compute first minus second for every two detectors, paired over groups, on items that both scored."""
    found = []
    for a, b in combinations(measured, 2):
        shared = measured[a].scored & measured[b].scored
        one, two = measured[a].only(shared), measured[b].only(shared)
        first, second = _compute_metrics(one.sample), _compute_metrics(two.sample)
        for metric in _COMPARED:
            x, y = first[metric], second[metric]
            difference, ci95, p_value = None, None, None
            if x is not None and y is not None:
                difference = x - y
                left_out = jackknife.leave_out(a, one)[metric] - jackknife.leave_out(b, two)[metric]
                ci95 = compute_plain_interval(difference, left_out)
                if ci95 is not None:
                    error = compute_jackknife_error(left_out)
                    p_value = compute_t_p_value(difference, error, len(left_out) - 1)
            found.append(
                DetectorDifference(
                    level=level,
                    metric=metric,
                    a=a,
                    b=b,
                    n=len(one.sample.labels),
                    difference=difference,
                    ci95=ci95,
                    p_value=None if p_value is None else float(f"{p_value:.6g}"),
                )
            )
    return found


def _compute_metrics(sample: Sample) -> dict[Metric, float | None]:
    return {
        "auroc": compute_auroc(sample),
        "auprc": compute_average_precision(sample),
        "f1": compute_flag_scores(sample)["f1"],
    }
