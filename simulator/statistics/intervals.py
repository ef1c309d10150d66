"""Intervals for numbers over personas: counts a turn, shares, areas, differences and kappa.

Turns of one conversation depend on each other, and so do conversations with one persona, which differ by
their seeds. So personas (of labelled data: groups of replies) are the sample, P of them. The standard error
of a number is that of the jackknife, from the number without each persona in turn (Efron and Stein 1981, The
jackknife estimate of variance, Annals of Statistics 9), and the bounds are those of Student's t with P - 1
degrees of freedom, on a scale on which the number is about normal:

- counts a turn: the logarithm. Few personas have most of the hallucinations, so a symmetric interval, and the
  percentiles of a bootstrap, lie too low.
- shares and areas under curves: the logit; of corrected shares, which may be near 0 with a large error, the
  arcsine of the root.
- differences: the number itself.
- Cohen's kappa: Fisher's z.

A number at the end of its range has no place on its scale. Without any hallucination in so many turns, the
upper bound is Garwood's for a Poisson count of 0 (1936, Fiducial limits for the Poisson distribution,
Biometrika 28), widened by the square of t over the normal quantile, for turns of a persona are alike. Of a
share of 0 or 1, each persona counts as one trial (Clopper and Pearson 1934, The use of confidence or fiducial
limits illustrated in the case of the binomial, Biometrika 26).

docs/studies/validity.md says how often these intervals have the truth.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from types import MappingProxyType
from typing import Annotated, Literal

import numpy as np
from numpy.typing import NDArray
from pydantic import AfterValidator

from hallulab.scenarios.text.wording import format_count, join_names

LEAST_FOR_INTERVAL = 6
"""Personas (questions, groups) below which there is no interval: 6 is the fewest pairs whose test can fall
below 5%, 2 of 2^6 signs, p = 0.031."""
LEVEL = 0.05
"""Chance of an interval to miss the truth, half of it on each side."""
_TIE = 1e-12
"""Errors below this are none: floating-point noise must not make intervals."""
_NORMAL = 1.959964
"""The 97.5% quantile of the normal distribution."""

Integers = NDArray[np.int64]
Floats = NDArray[np.float64]
Rounded = Annotated[float, AfterValidator(lambda value: round(float(value), 6))]
"""A number to 6 decimals. Further digits are noise and would differ between machines."""
Bounds = tuple[float, float]
"""Bounds of a 95% interval."""
Interval = tuple[Rounded, Rounded] | None
"""The same to 6 decimals; None where there is none."""
Scale = Literal["plain", "log", "logit", "arcsine", "fisher"]
"""Where bounds lie by so many standard errors on both sides of a number."""
Kind = Literal["rate", "share"]
"""A ratio of counts: a number a turn, which may be above 1, or a share, which may not."""

_SCALES: dict[Scale, tuple[tuple[float, float], Callable[[float], float], Callable[[float], float]]] = {
    "plain": ((-math.inf, math.inf), float, float),
    "log": ((0, math.inf), math.log, lambda at: math.exp(min(at, 700.0))),
    "logit": ((0, 1), lambda share: math.log(share / (1 - share)), lambda at: (1 + math.tanh(at / 2)) / 2),
    "arcsine": (
        (0, 1),
        lambda share: math.asin(math.sqrt(share)),
        lambda at: math.sin(min(max(at, 0.0), math.pi / 2)) ** 2,
    ),
    "fisher": ((-1, 1), math.atanh, math.tanh),
}
"""Range of numbers within each scale, the way to the scale, and back."""
_SLOPES: dict[Scale, Callable[[float], float]] = {
    "plain": lambda value: 1.0,
    "log": lambda value: 1 / value,
    "logit": lambda value: 1 / (value * (1 - value)),
    "arcsine": lambda value: 1 / (2 * math.sqrt(value * (1 - value))),
    "fisher": lambda value: 1 / (1 - value**2),
}
"""Standard error on the scale, of a standard error of 1 (delta method)."""


@dataclass(frozen=True, slots=True)
class Ratio:
    """Numerator and denominator of one persona, both counts; the denominator is at least 1."""

    numerator: int
    """Hallucinations, or tokens outside every flagged span."""
    denominator: int
    """Scored turns, or their tokens."""


def compute_ratio_of_sums(sample: Sequence[Ratio]) -> float | None:
    """Divide the sum of numerators by the sum of denominators; None when the latter is 0.

    >>> compute_ratio_of_sums([Ratio(1, 4), Ratio(2, 2)])
    0.5
    """
    denominator = sum(item.denominator for item in sample)
    return sum(item.numerator for item in sample) / denominator if denominator else None


def sum_by_cluster(ratios: Iterable[tuple[Hashable, Ratio]]) -> list[Ratio]:
    """Add up the ratios of each cluster, given as (cluster, ratio).

    >>> sum_by_cluster([("a", Ratio(1, 1)), ("b", Ratio(0, 1)), ("a", Ratio(2, 1))])
    [Ratio(numerator=3, denominator=2), Ratio(numerator=0, denominator=1)]
    """
    sums: dict[Hashable, Ratio] = {}
    for cluster, ratio in ratios:
        before = sums.get(cluster, Ratio(0, 0))
        sums[cluster] = Ratio(before.numerator + ratio.numerator, before.denominator + ratio.denominator)
    return list(sums.values())


def split_columns(sample: Sequence[Ratio]) -> Floats:
    """Return numerators and denominators as two rows."""
    rows = [(item.numerator, item.denominator) for item in sample]
    return np.array(rows, dtype=np.float64).reshape(-1, 2).T


def leave_out_ratios(sample: Sequence[Ratio]) -> Floats:
    """Compute the ratio of sums without each persona in turn; at least two personas."""
    over, under = split_columns(sample)
    return np.asarray((over.sum() - over) / (under.sum() - under))


@cache
def compute_t_quantile(freedom: float) -> float:
    """Compute the 97.5% quantile of Student's t."""
    from scipy.stats import t

    return float(t.ppf(1 - LEVEL / 2, freedom))


def compute_jackknife_error(left_out: Floats) -> float:
    """Compute the standard error of a number from its values without each cluster in turn."""
    clusters = len(left_out)
    return float(np.sqrt((clusters - 1) / clusters * ((left_out - left_out.mean()) ** 2).sum()))


def compute_t_interval(value: float, error: float, freedom: float, scale: Scale) -> Bounds | None:
    """Compute the interval by Student's t; None where no error is seen, or the scale has no such number.

    >>> low, high = compute_t_interval(1.0, 0.1, 5, "log") or (0, 0)
    >>> round(low, 3), round(high, 3)
    (0.773, 1.293)

    Args:
        freedom: degrees of freedom.
        scale: where the number is about normal.
    """
    (least, most), there, back = _SCALES[scale]
    if not error > _TIE or not least < value < most:
        return None
    step = compute_t_quantile(freedom) * error * _SLOPES[scale](value)
    return float(back(there(value) - step)), float(back(there(value) + step))


def compute_t_p_value(value: float, error: float, freedom: float) -> float | None:
    """Compute the two-sided p-value of a t test against 0; None where no error is seen.

    >>> round(compute_t_p_value(2.0, 1.0, 10) or 0, 4)
    0.0734
    """
    from scipy.special import stdtr

    return 2 * float(stdtr(freedom, -abs(value) / error)) if error > _TIE else None


def compute_interval(sample: Sequence[Ratio], kind: Kind) -> Bounds | None:
    """Compute the interval of the ratio of sums.

    None with fewer than `LEAST_FOR_INTERVAL` personas, and where all have the same ratio, neither 0 nor a
    share of 1; `explain_no_interval` says so.
    """
    if len(sample) < LEAST_FOR_INTERVAL:
        return None
    over, under = split_columns(sample)
    value = float(over.sum() / under.sum())
    if kind == "share":
        return compute_share_interval(value, leave_out_ratios(sample))
    if value == 0:
        return 0.0, bound_zero_rate(len(sample), float(under.sum()))
    # No personas, however they are drawn, spread a ratio's numerators and denominators more than this. Where
    # one persona has nearly all turns, the ratio without it says nothing of the spread.
    most = value * math.sqrt(2 * len(sample) / (len(sample) - 1))
    error = min(compute_jackknife_error(leave_out_ratios(sample)), most)
    return compute_t_interval(value, error, len(sample) - 1, "log")


def compute_share_interval(value: float, left_out: Floats, clusters: int | None = None) -> Bounds | None:
    """Compute the interval of a share, an area under a curve, or another number from 0 to 1.

    None where the number is the same without each cluster, or is not defined without one.

    Args:
        left_out: the number without each cluster in turn; at least two.
        clusters: which count, as trials where the number is 0 or 1, and for degrees of freedom; None: all
            that are left out.
    """
    if np.isnan(left_out).any():
        return None
    clusters = clusters or len(left_out)
    if value <= _TIE:
        return 0.0, 1 - bound_one(clusters)
    if value >= 1 - _TIE:
        return bound_one(clusters), 1.0
    freedom = max(min(clusters, len(left_out)) - 1, 1)
    return compute_t_interval(value, compute_jackknife_error(left_out), freedom, "logit")


def compute_plain_interval(value: float, left_out: Floats) -> Bounds | None:
    """Compute the interval of a number of any sign from its values without each cluster, at least two."""
    return compute_t_interval(value, compute_jackknife_error(left_out), len(left_out) - 1, "plain")


def compute_quotient_interval(above: float, below: float, left_out: Floats) -> Bounds | None:
    """Compute the interval of a quotient of two numbers of any sign.

    Of Fieller (1954, Some problems in interval estimation, Journal of the Royal Statistical Society B 16):
    the quotients r for which `above` - r `below` is not significantly different from 0. None where `below`
    itself is not, for then no interval bounds the quotient, and where no error is seen.

    >>> without = np.array([[1.0, 1.9], [1.1, 2.0], [0.9, 2.1]])
    >>> low, high = compute_quotient_interval(1.0, 2.0, without) or (0, 0)
    >>> round(low, 2), round(high, 2)
    (0.22, 0.91)

    Args:
        above: the numerator.
        below: the denominator.
        left_out: both without each cluster in turn, shape (clusters, 2).
    """
    clusters = len(left_out)
    squares = compute_t_quantile(clusters - 1) ** 2 * (clusters - 1) / clusters
    deviations = left_out - left_out.mean(axis=0)
    (of_above, of_both), (_, of_below) = squares * deviations.T @ deviations
    first, middle, last = below**2 - of_below, above * below - of_both, above**2 - of_above
    inside = middle**2 - first * last
    if first <= 0 or not inside > _TIE:
        return None
    root = math.sqrt(inside)
    return float((middle - root) / first), float((middle + root) / first)


def bound_zero_rate(personas: int, turns: float) -> float:
    """Compute the upper bound of a number a turn of which there was none.

    >>> round(bound_zero_rate(6, 12), 3)
    0.529
    """
    widened = (compute_t_quantile(personas - 1) / _NORMAL) ** 2
    return -math.log(LEVEL / 2) * widened / turns


def bound_one(clusters: int) -> float:
    """Compute the lower bound of a share that is 1 in each of so many clusters.

    >>> round(bound_one(20), 2)
    0.83
    """
    return float((LEVEL / 2) ** (1 / clusters))


def compute_kappa(tables: Floats) -> Floats:
    """Compute Cohen's kappa of tables (both, the one alone, the other alone, neither), shape (..., 4).

    NaN where all ratings are the same.
    """
    both, one, other, neither = np.moveaxis(tables, -1, 0)
    number = both + one + other + neither
    first, second = (both + one) / number, (both + other) / number
    chance = first * second + (1 - first) * (1 - second)
    differ = (one + other > 0) | ((both > 0) & (neither > 0))
    found: Floats = ((both + neither) / number - chance) / np.where(differ & (chance < 1), 1 - chance, np.nan)
    return found


def compute_kappa_interval(tables: Floats) -> Bounds | None:
    """Compute the interval of Cohen's kappa of two raters who flag or do not.

    The standard error is the larger of the jackknife's and Cohen's for independent turns (1960, A coefficient
    of agreement for nominal scales, Educational and Psychological Measurement 20): the jackknife's is too
    small where few turns are flagged. Where they agree on all turns, or on none, that share has the bound of
    Clopper and Pearson over personas. None with fewer than `LEAST_FOR_INTERVAL` personas, and where kappa is
    not defined, or not without one of them.

    Args:
        tables: turns of each persona that both flag, the one alone, the other alone, and neither: shape
            (personas, 4).
    """
    tables = tables[tables.sum(axis=1) > 0]
    if len(tables) < LEAST_FOR_INTERVAL:
        return None
    total = tables.sum(axis=0)
    value, left_out = float(compute_kappa(total)), compute_kappa(total - tables)
    if math.isnan(value) or np.isnan(left_out).any():
        return None
    turns = total.sum()
    agreement = float((total[0] + total[3]) / turns)
    first, second = (total[0] + total[1]) / turns, (total[0] + total[2]) / turns
    chance = float(first * second + (1 - first) * (1 - second))
    if agreement in (0, 1):
        bound = bound_one(len(tables)) if agreement else 1 - bound_one(len(tables))
        low, high = sorted([(bound - chance) / (1 - chance), value])
        return low, high
    cohens = math.sqrt(agreement * (1 - agreement) / turns) / (1 - chance)
    error = max(compute_jackknife_error(left_out), cohens)
    return compute_t_interval(value, error, len(tables) - 1, "fisher")


def explain_no_interval(
    number: int, noun: str = "persona", found: Mapping[str, tuple[float, float] | None] = MappingProxyType({})
) -> str | None:
    """Say why an interval is missing, as `2 personas; 6 needed for an interval`; None: none is missing.

    >>> explain_no_interval(6, found={"HPT-1": None, "TokAcc-1": (0.25, 0.5)})
    'every persona has the same HPT-1'

    Args:
        noun: what they are.
        found: intervals by the name of their number.
    """
    if number < LEAST_FOR_INTERVAL:
        return f"{format_count(number, noun)}; {LEAST_FOR_INTERVAL} needed for an interval"
    names = [name for name, ci95 in found.items() if ci95 is None]
    return f"every {noun} has the same {join_names(names)}" if names else None
