"""How many conversations a paired comparison of two chatbots would need to tell them apart."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import fmean, stdev

from simulator.measure.statistics import LEAST_FOR_INTERVAL, Ratio

ALPHA = 0.05
"""Two-sided level of the test."""
POWER = 0.8
"""Chance with which the test shall find a difference as large as the one measured."""


@dataclass(frozen=True)
class Estimate:
    """A number of pairs, or why there is none."""

    pairs: int | None
    """How many pairs are needed."""
    reason: str | None
    """Why that cannot be estimated; None where it can."""


def pairs_needed(first: Sequence[Ratio], second: Sequence[Ratio]) -> Estimate:
    """How many pairs would tell two chatbots apart, as far as those measured let one foresee.

    The standard formula for a paired comparison, rounded up: n = ((z(1 - α/2) + z(power)) · sd / mean)², with
    mean and sample standard deviation (n - 1) of the pairs' differences. A pair's difference is that of the
    two conversations' own ratios, so long conversations do not weigh more here. α is not divided by the
    number of comparisons: what Holm's correction asks of one depends on all others, so this is the least.

    Args:
        first: ratios of one chatbot; `first[i]` and `second[i]` are a pair.
        second: ratios of the other.
    """
    differences = [
        one.numerator / one.denominator - two.numerator / two.denominator
        for one, two in zip(first, second, strict=True)
    ]
    if len(differences) < 2:
        return Estimate(None, "fewer than two conversations can be compared")
    difference, spread = fmean(differences), stdev(differences)
    if math.isclose(difference, 0.0, abs_tol=1e-12):
        return Estimate(None, "on average they do not differ at all")
    if math.isclose(spread, 0.0, abs_tol=1e-12):
        return Estimate(None, "they differ by the same in every conversation, so there is no spread to go by")
    return Estimate(math.ceil((_quantiles() * spread / difference) ** 2), None)


def least_pairs(comparisons: int) -> int:
    """Pairs below which no p-value of that many permutation tests can fall below `ALPHA` after Holm.

    The smallest p-value of n pairs is 2/2^n, and Holm multiplies the smallest of all by their number.
    """
    pairs = LEAST_FOR_INTERVAL
    while comparisons * 2 ** (1 - pairs) >= ALPHA:
        pairs += 1
    return pairs


def _quantiles() -> float:
    """z(1 - α/2) + z(power), about 2.80."""
    from scipy.stats import norm

    return float(norm.ppf(1 - ALPHA / 2) + norm.ppf(POWER))
