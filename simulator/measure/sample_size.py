"""Number of personas that a paired comparison needs to tell two chatbots apart."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import fmean, stdev

from hallulab.simulator.measure.statistics import LEAST_FOR_INTERVAL, Ratio

ALPHA = 0.05
"""Two-sided level of the test."""
POWER = 0.8
"""Chance that the test finds a difference as large as the measured one."""


@dataclass(frozen=True)
class Estimate:
    """A number of pairs, or why there is none."""

    pairs: int | None
    """Pairs needed."""
    reason: str | None
    """Why that cannot be estimated; None where it can."""


def estimate_pairs_needed(first: Sequence[Ratio], second: Sequence[Ratio]) -> Estimate:
    """Estimate how many pairs would tell two chatbots apart, from those measured.

    The standard formula for a paired comparison, rounded up: n = ((z(1 - α/2) + z(power)) · sd / mean)², with
    mean and sample standard deviation (n - 1) of the pairs' differences. A pair is a persona, and its
    difference that of the two chatbots' own ratios there, so long conversations do not weigh more here. α is
    not divided by the number of comparisons, because Holm's correction of one depends on all others. So this
    is the least.

    Args:
        first: ratios of one chatbot; `first[i]` and `second[i]` are a pair.
        second: ratios of the other.
    """
    differences = [
        one.numerator / one.denominator - two.numerator / two.denominator
        for one, two in zip(first, second, strict=True)
    ]
    if len(differences) < 2:
        return Estimate(None, "fewer than two personas can be compared")
    difference, spread = fmean(differences), stdev(differences)
    if math.isclose(difference, 0.0, abs_tol=1e-12):
        return Estimate(None, "on average they do not differ at all")
    if math.isclose(spread, 0.0, abs_tol=1e-12):
        return Estimate(None, "they differ by the same with every persona, so there is no spread to go by")
    return Estimate(math.ceil((_sum_quantiles() * spread / difference) ** 2), None)


def compute_least_pairs(comparisons: int) -> int:
    """Return the pairs below which so many tests give no p-value below `ALPHA` after Holm.

    The smallest p-value of n pairs is 2/2^n, and Holm multiplies the smallest one by the number of tests.
    """
    pairs = LEAST_FOR_INTERVAL
    while comparisons * 2 ** (1 - pairs) >= ALPHA:
        pairs += 1
    return pairs


def _sum_quantiles() -> float:
    """Return z(1 - α/2) + z(power), about 2.80."""
    from scipy.stats import norm

    return float(norm.ppf(1 - ALPHA / 2) + norm.ppf(POWER))
