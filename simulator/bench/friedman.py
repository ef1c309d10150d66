"""Friedman's test over sources: do three or more detectors differ at all?

A source (group) is a block. In each block, detectors are ranked by their mean squared error (score − label)²,
the source's Brier score, over the replies that all of them scored. Detectors whose scores are no
probabilities have no such error and are left out. The p-value comes from the chi-squared distribution, which
is accurate for more than ten sources.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import reduce
from typing import Literal

import numpy as np

from hallulab.scenarios.transcript import Frozen
from hallulab.simulator.bench.levels import Items
from hallulab.simulator.measure.detection import compute_brier
from hallulab.simulator.measure.numbers import Rounded
from hallulab.simulator.measure.statistics import Floats, Integers

FEWEST = 3
"""Detectors, and sources or conversations, below which there is no test."""


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
    """Run the test over sources; None with too few of them or of detectors.

    Args:
        measured: the items that each detector scored of the same replies, at response level.
    """
    compared = {name: items for name, items in measured.items() if compute_brier(items.sample) is not None}
    if len(compared) < FEWEST:
        return None
    shared = reduce(np.intersect1d, (items.replies for items in compared.values()))
    errors = np.array([_compute_source_errors(items, shared) for items in compared.values()])
    sources = errors.shape[1]
    if sources < FEWEST:
        return None
    found = rank_test(dict(zip(compared, errors, strict=True)))
    return SourceTest(n=len(shared), groups=sources, **dict(found))


def rank_test(losses: Mapping[str, Floats]) -> RankTest:
    """Run Friedman's test.

    Args:
        losses: each detector's loss in each block, for at least `FEWEST` detectors; the least one has rank 1.
    """
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
