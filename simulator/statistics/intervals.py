"""Intervals and tests for ratios of sums over personas, and the personas that a test needs.

Turns of one conversation depend on each other, and so do conversations with one persona, which differ by
their seeds. So the cluster bootstrap resamples personas with all their conversations, and the paired
permutation test exchanges them. HPT-1 and TokAcc-1 are both a sum over a sum, and share this code.
Generators have a fixed seed and counts are integers: equal input gives equal output to the last digit.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence, Sized
from dataclasses import dataclass, replace
from statistics import fmean, stdev
from types import MappingProxyType
from typing import Annotated

import numpy as np
from numpy.typing import NDArray
from pydantic import AfterValidator

from hallulab.scenarios.text.wording import format_count, join_names

RESAMPLES = 10_000
"""Bootstrap samples, and label exchanges where there are too many to enumerate."""
LEAST_FOR_INTERVAL = 6
"""Personas (questions, groups) below which there is no interval. A percentile bootstrap of fewer
misleads: two equal ones have an interval of no width. And 6 is the fewest pairs whose permutation test can
fall below 5%: 2 of 2^6 exchanges, p = 0.031."""
UNDEFINED = 0.05
"""Largest share of undefined replicates; with more, there is no interval."""
_SEED = 20_250
_CELLS = 1_000_000
"""Largest number of drawn indices in memory at once."""
_TIE = 1e-12
"""Differences closer than this are equal: floating-point noise must not break ties, nor widen intervals."""

Integers = NDArray[np.int64]
Floats = NDArray[np.float64]
Rounded = Annotated[float, AfterValidator(lambda value: round(float(value), 6))]
"""A number to 6 decimals. Further digits are noise and would differ between machines."""
Interval = tuple[Rounded, Rounded] | None
"""Bounds of a 95% interval; None where there is none."""


@dataclass(frozen=True, slots=True)
class Ratio:
    """Numerator and denominator of one persona, both counts; the denominator is at least 1."""

    numerator: int
    """Hallucinations, or tokens outside every flagged span."""
    denominator: int
    """Scored turns, or their tokens."""


@dataclass(frozen=True)
class Difference:
    """Result of a paired comparison of two chatbots."""

    pairs: int
    """Personas of which both have a denominator."""
    difference: float | None
    """First minus second, over the pairs; None without pairs."""
    ci95: tuple[float, float] | None
    """Paired bootstrap interval; None with fewer than `LEAST_FOR_INTERVAL` pairs, or without any width."""
    p_value: float | None
    """Two-sided; None with fewer than two pairs, where every exchange gives the same distance."""


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


def compute_interval(sample: Sequence[Ratio]) -> tuple[float, float] | None:
    """Compute the 95% percentile interval of the ratio of sums, resampling personas with replacement.

    None with fewer than `LEAST_FOR_INTERVAL` personas, and where all have the same ratio;
    `explain_no_interval` says so.
    """
    return compute_intervals([sample])[0]


def compute_intervals(samples: Sequence[Sequence[Ratio]]) -> list[tuple[float, float] | None]:
    """Compute the interval of each sample; those of one length are resampled together, in the same way."""
    found: list[tuple[float, float] | None] = [None] * len(samples)
    for places in _group_by_length(samples):
        columns = [column for place in places for column in _split_columns(samples[place])]
        sums = _resample_sums(columns)
        for at, place in enumerate(places):
            found[place] = _compute_percentiles(sums[:, 2 * at] / sums[:, 2 * at + 1])
    return found


def explain_no_interval(
    number: int, noun: str = "persona", found: Mapping[str, tuple[float, float] | None] = MappingProxyType({})
) -> str | None:
    """Say why an interval is missing, as `2 personas; 6 needed for an interval`; None: none is missing.

    >>> explain_no_interval(6, found={"HPT-1": None, "TokAcc-1": (0.25, 0.5)})
    'every persona has the same HPT-1'

    Args:
        number: personas.
        noun: what they are.
        found: intervals by the name of their number.
    """
    if number < LEAST_FOR_INTERVAL:
        return f"{format_count(number, noun)}; {LEAST_FOR_INTERVAL} needed for an interval"
    names = [name for name, ci95 in found.items() if ci95 is None]
    return f"every {noun} has the same {join_names(names)}" if names else None


def draw_cluster_weights(clusters: int, resamples: int) -> Integers:
    """Draw how often a bootstrap takes each cluster: shape (resamples, clusters), rows sum to `clusters`.

    Equal arguments give equal weights. So detectors measured on the same clusters are resampled together, and
    the differences of their replicates are paired.
    """
    generator = np.random.default_rng(_SEED)
    return generator.multinomial(clusters, np.full(clusters, 1.0 / clusters), size=resamples)


def compute_percentile_interval(values: Floats) -> tuple[float, float] | None:
    """Compute the 95% percentile interval of bootstrap replicates, without undefined ones (NaN).

    None when more than `UNDEFINED` of them are undefined: the others are no fair sample then. None also where
    both bounds are the same: such an interval would claim a certainty that nobody has.
    """
    return _compute_percentiles(values[~np.isnan(values)]) if is_mostly_defined(values) else None


def is_mostly_defined(values: Floats) -> bool:
    """Return whether at most `UNDEFINED` of bootstrap replicates are undefined (NaN)."""
    return bool(np.isnan(values).mean() <= UNDEFINED)


def compare_pairs(first: Sequence[Ratio], second: Sequence[Ratio]) -> Difference:
    """Compare two chatbots on the same personas: `first[i]` and `second[i]` are a pair.

    The null hypothesis is that within each pair the labels could be exchanged. At most `RESAMPLES` exchanges
    (2^n) are all enumerated. Else that many are drawn, and the p-value is (k + 1) / (n + 1), which is never
    0.

    Raises:
        ValueError: the samples differ in length.
    """
    return compare_all_pairs([(first, second)])[0]


def compare_all_pairs(samples: Sequence[tuple[Sequence[Ratio], Sequence[Ratio]]]) -> list[Difference]:
    """Compute the `compare_pairs` of each two samples; those of one length are resampled together.

    Raises:
        ValueError: two samples differ in length.
    """
    columns: list[list[Integers]] = []
    found: list[Difference] = []
    for first, second in samples:
        if len(first) != len(second):
            raise ValueError(f"{len(first)} and {len(second)} personas cannot be paired")
        one, two = compute_ratio_of_sums(first), compute_ratio_of_sums(second)
        difference = None if one is None or two is None else one - two
        found.append(Difference(len(first), difference, None, None))
        columns.append([*_split_columns(first), *_split_columns(second)] if difference is not None else [])
    comparable = [held[0] if held else () for held in columns]
    for places in _group_by_length(comparable):
        sums = _resample_sums([column for place in places for column in columns[place]])
        for at, place in enumerate(places):
            over, under, other_over, other_under = sums[:, 4 * at : 4 * at + 4].T
            ci95 = _compute_percentiles(over / under - other_over / other_under)
            found[place] = replace(found[place], ci95=ci95)
    for places in _group_by_length(comparable, least=2):
        p_values = _compute_permutation_ps([columns[place] for place in places])
        for place, p_value in zip(places, p_values, strict=True):
            found[place] = replace(found[place], p_value=p_value)
    return found


def adjust_by_holm(p_values: Sequence[float | None]) -> tuple[float | None, ...]:
    """Adjust p-values by Holm's step-down method; None is no test and stays None.

    >>> adjust_by_holm([0.25, None, 0.125, 0.5])
    (0.5, None, 0.375, 0.5)
    """
    ranked = sorted((p, place) for place, p in enumerate(p_values) if p is not None)
    adjusted: list[float | None] = [None] * len(p_values)
    highest = 0.0
    for rank, (p, place) in enumerate(ranked):
        highest = max(highest, min(1.0, p * (len(ranked) - rank)))
        adjusted[place] = highest
    return tuple(adjusted)


def _split_columns(sample: Sequence[Ratio]) -> tuple[Integers, Integers]:
    return (
        np.array([item.numerator for item in sample], dtype=np.int64),
        np.array([item.denominator for item in sample], dtype=np.int64),
    )


def _group_by_length(samples: Sequence[Sized], least: int = LEAST_FOR_INTERVAL) -> list[list[int]]:
    """Return the positions of samples of at least that length, those of one length together."""
    places: dict[int, list[int]] = defaultdict(list)
    for place, sample in enumerate(samples):
        if len(sample) >= least:
            places[len(sample)].append(place)
    return list(places.values())


def _resample_sums(columns: Sequence[Integers]) -> Floats:
    """Return the sums of columns over `RESAMPLES` draws of their rows: shape (RESAMPLES, columns).

    How often each row was drawn is counted once for all columns. Sums of whole numbers are exact.
    """
    values = np.column_stack(columns).astype(np.float64)
    return np.concatenate([_count_draws(draw) @ values for draw in _draw_rows(len(values))])


def _count_draws(draw: Integers) -> Floats:
    """Count how often each draw (a row) took each item: shape (draws, items)."""
    draws, items = draw.shape
    places = draw + np.arange(draws)[:, None] * items
    return np.bincount(places.ravel(), minlength=draws * items).reshape(draws, items).astype(np.float64)


def _draw_rows(size: int) -> Iterator[Integers]:
    generator = np.random.default_rng(_SEED)
    rows = max(1, _CELLS // size)
    for done in range(0, RESAMPLES, rows):
        yield generator.integers(0, size, size=(min(rows, RESAMPLES - done), size))


def _compute_percentiles(values: Floats) -> tuple[float, float] | None:
    """Return the bounds of the interval; None where they are the same."""
    low, high = np.quantile(values, [0.025, 0.975])
    return (float(low), float(high)) if high - low > _TIE else None


def _compute_permutation_ps(columns: Sequence[Sequence[Integers]]) -> list[float]:
    """Return the p-value of each two samples of one length, given as numerators and denominators of both."""
    over, under, other_over, other_under = (np.column_stack(found) for found in zip(*columns, strict=True))
    pairs = len(over)
    observed = np.abs(over.sum(0) / under.sum(0) - other_over.sum(0) / other_under.sum(0))
    exact = 2**pairs <= RESAMPLES
    hits, total = np.zeros(len(columns), dtype=np.int64), 0
    for swaps in [_enumerate_swaps(pairs)] if exact else _draw_swaps(pairs):
        chosen = swaps.astype(np.float64)
        moved_over, moved_under = chosen @ (other_over - over), chosen @ (other_under - under)
        differences = (over.sum(0) + moved_over) / (under.sum(0) + moved_under) - (
            other_over.sum(0) - moved_over
        ) / (other_under.sum(0) - moved_under)
        hits += np.count_nonzero(np.abs(differences) >= observed - _TIE, axis=0)
        total += len(swaps)
    return [float(hit / total if exact else (hit + 1) / (total + 1)) for hit in hits]


def _enumerate_swaps(pairs: int) -> Integers:
    return (np.arange(2**pairs, dtype=np.int64)[:, None] >> np.arange(pairs, dtype=np.int64)) & 1


def _draw_swaps(pairs: int) -> Iterator[Integers]:
    generator = np.random.default_rng(_SEED)
    rows = max(1, _CELLS // pairs)
    for done in range(0, RESAMPLES, rows):
        yield generator.integers(0, 2, size=(min(rows, RESAMPLES - done), pairs))


ALPHA = 0.05
"""Two-sided level of the test."""


POWER = 0.8
"""Chance that the test finds a difference as large as the measured one."""


@dataclass(frozen=True)
class Estimate:
    """A number of pairs, or why there is none."""

    pairs: int | None
    reason: str | None
    """Why that cannot be estimated; None where it can."""


NO_DIFFERENCE = "on average they do not differ at all"


def estimate_pairs_needed(first: Sequence[Ratio], second: Sequence[Ratio]) -> Estimate:
    """Estimate how many pairs would tell two chatbots apart, from those measured.

    The standard formula for a paired comparison, rounded up: n = ((z(1 - α/2) + z(power)) · sd / mean)², with
    mean and sample standard deviation (n - 1) of the pairs' differences. A pair is a persona, and its
    difference that of the two chatbots' own ratios there, so long conversations do not weigh more here. α is
    not divided by the number of comparisons, because Holm's correction of one depends on all others. So this
    is the least: the power is that of one test alone.

    Args:
        first: ratios of one chatbot; `first[i]` and `second[i]` are a pair.
        second: ratios of the other.
    """
    from scipy.stats import norm

    differences = [
        one.numerator / one.denominator - two.numerator / two.denominator
        for one, two in zip(first, second, strict=True)
    ]
    if len(differences) < 2:
        return Estimate(None, "fewer than two personas can be compared")
    difference, spread = fmean(differences), stdev(differences)
    if math.isclose(difference, 0.0, abs_tol=1e-12):
        return Estimate(None, NO_DIFFERENCE)
    if math.isclose(spread, 0.0, abs_tol=1e-12):
        return Estimate(None, "they differ by the same with every persona, so there is no spread to go by")
    quantiles = norm.ppf(1 - ALPHA / 2) + norm.ppf(POWER)  # about 2.80
    return Estimate(math.ceil(float(quantiles * spread / difference) ** 2), None)


def compute_least_pairs(comparisons: int) -> int:
    """Return the pairs below which so many tests give no p-value below `ALPHA` after Holm.

    The smallest p-value of n pairs is 2/2^n, and Holm multiplies the smallest one by the number of tests.
    """
    pairs = LEAST_FOR_INTERVAL
    while comparisons * 2 ** (1 - pairs) >= ALPHA:
        pairs += 1
    return pairs
