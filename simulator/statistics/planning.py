"""Personas that a comparison needs, planned before it is made, for a difference that someone cares about.

The difference that was measured is no plan: of two chatbots that a test did not tell apart, it is noise for
the most part, and where it happens to be large, few personas seem enough. So the difference is given, and
only the spread is measured, of which the plan takes the upper limit.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from hallulab.simulator.statistics.differences import ALPHA, compute_pseudo_values
from hallulab.simulator.statistics.intervals import LEAST_FOR_INTERVAL, Ratio
from hallulab.simulator.statistics.sequence import MARGIN

POWER = 0.8
"""Chance that the test finds the given difference."""
SPREAD_LIMIT = 0.8
"""Chance that the true spread is below the one that is planned with."""


@dataclass(frozen=True)
class PairsPlan:
    """A number of pairs, or why there is none."""

    pairs: int | None
    reason: str | None
    """Why none can be planned; None where one can."""


def plan_pairs(first: Sequence[Ratio], second: Sequence[Ratio], margin: float = MARGIN) -> PairsPlan:
    """Plan how many pairs would tell two chatbots apart that differ by `margin`.

    The least number of at least `LEAST_FOR_INTERVAL` with which a t test of level `ALPHA` has `POWER`, by the
    noncentral t distribution. The spread is the standard deviation of the measured pairs' pseudo-values,
    which test and interval rest on; the plan takes the upper limit of its one-sided interval of
    `SPREAD_LIMIT`, by chi-squared. α is not divided by the number of comparisons, because Holm's correction
    of one depends on all others: the power is that of one test alone.

    Args:
        first: ratios of one chatbot; `first[i]` and `second[i]` are a pair.
        margin: difference of the two, above 0.
    """
    from scipy.stats import chi2

    pairs = len(first)
    if pairs < LEAST_FOR_INTERVAL:
        few = f"fewer than {LEAST_FOR_INTERVAL} personas say too little of how much pairs vary"
        return PairsPlan(None, few)
    spread = float(np.std(compute_pseudo_values(first, second), ddof=1))
    if spread <= 1e-12:
        same = "they differ by the same with every persona, so nothing says how much pairs vary"
        return PairsPlan(None, same)
    limit = spread * math.sqrt((pairs - 1) / chi2.ppf(1 - SPREAD_LIMIT, pairs - 1))
    return PairsPlan(find_least_pairs(margin / limit), None)


def find_least_pairs(effect: float) -> int:
    """Find the pairs with which a paired t test has `POWER`, for a difference in standard deviations."""
    from scipy.stats import norm

    quantiles = float(norm.ppf(1 - ALPHA / 2) + norm.ppf(POWER))
    # The normal distribution needs fewer, by two or three.
    pairs = max(LEAST_FOR_INTERVAL, math.ceil((quantiles / effect) ** 2))
    while compute_power(pairs, effect) < POWER:
        pairs += 1
    return pairs


def compute_power(pairs: int, effect: float) -> float:
    """Compute the chance of a two-sided paired t test to find a difference in standard deviations.

    >>> round(compute_power(34, 0.5), 3)
    0.808
    """
    from scipy.stats import nct, t

    freedom, shift = pairs - 1, effect * math.sqrt(pairs)
    bound = t.ppf(1 - ALPHA / 2, freedom)
    return float(nct.sf(bound, freedom, shift) + nct.cdf(-bound, freedom, shift))


def compute_least_pairs(comparisons: int) -> int:
    """Return the pairs below which so many tests give no p-value below `ALPHA` after Holm.

    The smallest p-value of n pairs is 2/2^n, and Holm multiplies the smallest one by the number of tests.
    """
    pairs = LEAST_FOR_INTERVAL
    while comparisons * 2 ** (1 - pairs) >= ALPHA:
        pairs += 1
    return pairs
