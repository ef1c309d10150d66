"""Two runs with different personas: an interval and a test that pair nothing."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import combinations, islice
from math import comb

import numpy as np

from hallulab.simulator.statistics.intervals import (
    LEAST_FOR_INTERVAL,
    RESAMPLES,
    Difference,
    Floats,
    Integers,
    Ratio,
    compute_percentile_interval,
    compute_ratio_of_sums,
)

_SEED = 20_260
_CELLS = 1_000_000
"""Largest number of drawn numbers in memory at once."""
_TIE = 1e-12
"""Differences closer than this are equal, as in the paired test."""


def compare_unpaired(first: Sequence[Ratio], second: Sequence[Ratio]) -> Difference:
    """Compare the ratios of two groups of personas that have nobody, or too few, in common.

    The interval resamples the personas of each group by themselves. The test exchanges personas between the
    groups: all ways if they are at most `RESAMPLES`, else that many are drawn, and the p-value is
    (k + 1) / (n + 1). `pairs` of the result is 0.

    >>> one, two = [Ratio(1, 1)] * 2, [Ratio(0, 1)] * 2
    >>> found = compare_unpaired(one, two)
    >>> found.difference, round(found.p_value or 0, 4)
    (1.0, 0.3333)
    """
    one, two = compute_ratio_of_sums(first), compute_ratio_of_sums(second)
    if one is None or two is None:
        return Difference(0, None, None, None)
    difference = one - two
    enough = min(len(first), len(second)) >= LEAST_FOR_INTERVAL
    ci95 = _compute_interval(first, second) if enough else None
    return Difference(0, difference, ci95, _compute_p(first, second, abs(difference)))


def _compute_interval(first: Sequence[Ratio], second: Sequence[Ratio]) -> tuple[float, float] | None:
    generator = np.random.default_rng(_SEED)
    return compute_percentile_interval(_resample(first, generator) - _resample(second, generator))


def _resample(sample: Sequence[Ratio], generator: np.random.Generator) -> Floats:
    """Return the ratio of sums over `RESAMPLES` draws of the personas."""
    values = _stack(sample)
    size = len(values)
    found = []
    for rows in _split_rows(size):
        weights = generator.multinomial(size, np.full(size, 1.0 / size), size=rows)
        sums = weights.astype(np.float64) @ values
        found.append(sums[:, 0] / sums[:, 1])
    return np.concatenate(found)


def _compute_p(first: Sequence[Ratio], second: Sequence[Ratio], observed: float) -> float | None:
    """Return the two-sided p-value; None where every exchange gives the same distance."""
    values = _stack([*first, *second])
    size, own = len(values), len(first)
    if size < 3:
        return None
    total = values.sum(axis=0)
    exact = comb(size, own) <= RESAMPLES
    hits = drawn = 0
    for chosen in _enumerate_groups(size, own) if exact else _draw_groups(size, own):
        sums = chosen @ values
        rest = total - sums
        differences = np.abs(sums[:, 0] / sums[:, 1] - rest[:, 0] / rest[:, 1])
        hits += int(np.count_nonzero(differences >= observed - _TIE))
        drawn += len(chosen)
    return hits / drawn if exact else (hits + 1) / (drawn + 1)


def _enumerate_groups(size: int, own: int) -> Iterator[Floats]:
    """Yield all ways to choose `own` of so many, as rows of zeros and ones."""
    ways = combinations(range(size), own)
    while places := list(islice(ways, max(1, _CELLS // size))):
        chosen = np.zeros((len(places), size))
        np.put_along_axis(chosen, np.array(places, dtype=np.int64), 1.0, axis=1)
        yield chosen


def _draw_groups(size: int, own: int) -> Iterator[Floats]:
    generator = np.random.default_rng(_SEED)
    first: Integers = (np.arange(size) < own).astype(np.int64)
    for rows in _split_rows(size):
        yield generator.permuted(np.tile(first, (rows, 1)), axis=1).astype(np.float64)


def _split_rows(size: int) -> Iterator[int]:
    """Yield how many of `RESAMPLES` rows are drawn at once."""
    rows = max(1, _CELLS // size)
    for done in range(0, RESAMPLES, rows):
        yield min(rows, RESAMPLES - done)


def _stack(sample: Sequence[Ratio]) -> Floats:
    return np.array([(item.numerator, item.denominator) for item in sample], dtype=np.float64)
