"""Differences between two chatbots or two runs: intervals and tests, paired by persona or not.

Of P pairs, D is the difference of two ratios of sums, D(i) that without the pair i, and P D - (P - 1) D(i)
the pseudo-value of the pair (Tukey 1958, Bias and confidence in not-quite large samples, Annals of
Mathematical Statistics 29). The interval is that of the jackknife by Student's t with P - 1 degrees of
freedom. The test flips the signs of the pseudo-values: if the chatbots do not differ, each is as likely above
0 as below. Where all conversations are of one length, a pseudo-value is the pair's own difference, and the
flips exchange the two chatbots' conversations, which is exact.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import combinations, islice

import numpy as np

from hallulab.simulator.statistics.intervals import (
    LEAST_FOR_INTERVAL,
    Bounds,
    Floats,
    Integers,
    Kind,
    Ratio,
    compute_interval,
    compute_plain_interval,
    compute_ratio_of_sums,
    leave_out_ratios,
    split_columns,
)

ALPHA = 0.05
"""Two-sided level of the tests."""
FLIPS = 10_000
"""Most flips, or exchanges, that are all enumerated; where there are more, so many are drawn."""
_SEED = 20_250
_CELLS = 1_000_000
"""Largest number of drawn numbers in memory at once."""
_TIE = 1e-9
"""Sums closer than this, by the sum of absolute values, are equal: rounding must not break ties."""


@dataclass(frozen=True)
class Difference:
    """Result of a comparison of two chatbots, or of one in two runs."""

    pairs: int
    """Personas of which both have a denominator; 0 where they are not paired."""
    difference: float | None
    """First minus second; None where one has no persona."""
    ci95: Bounds | None
    """None with fewer than `LEAST_FOR_INTERVAL` personas, or where all have the same difference, not of 0."""
    p_value: float | None
    """Two-sided; None where every flip, or exchange, gives the same distance."""


def compare_pairs(first: Sequence[Ratio], second: Sequence[Ratio], kind: Kind) -> Difference:
    """Compare two chatbots on the same personas: `first[i]` and `second[i]` are a pair.

    At most `FLIPS` flips (2^P) are all enumerated. Else that many are drawn, and the p-value is
    (k + 1) / (n + 1), which is never 0.

    >>> compare_pairs([Ratio(2, 1), Ratio(1, 1), Ratio(1, 1)], [Ratio(0, 1)] * 3, "rate").p_value
    0.25

    Raises:
        ValueError: the samples differ in length.
    """
    return compare_all_pairs([(first, second, kind)])[0]


def compare_all_pairs(samples: Sequence[tuple[Sequence[Ratio], Sequence[Ratio], Kind]]) -> list[Difference]:
    """Compute the `compare_pairs` of each two samples; those of one length share the drawn signs.

    Raises:
        ValueError: two samples differ in length.
    """
    found = [_measure_pairs(*sample) for sample in samples]
    places: dict[int, list[int]] = defaultdict(list)
    for place, item in enumerate(found):
        if item.pairs >= 2:
            places[item.pairs].append(place)
    for own in places.values():
        values = np.column_stack([compute_pseudo_values(*samples[place][:2]) for place in own])
        for place, p_value in zip(own, flip_signs(values), strict=True):
            found[place] = replace(found[place], p_value=p_value)
    return found


def _measure_pairs(first: Sequence[Ratio], second: Sequence[Ratio], kind: Kind) -> Difference:
    """Compute difference and interval."""
    if len(first) != len(second):
        raise ValueError(f"{len(first)} and {len(second)} personas cannot be paired")
    one, two = compute_ratio_of_sums(first), compute_ratio_of_sums(second)
    if one is None or two is None:
        return Difference(len(first), None, None, None)
    ci95 = None
    if len(first) >= LEAST_FOR_INTERVAL:
        ci95 = compute_plain_interval(one - two, leave_out_ratios(first) - leave_out_ratios(second))
        if ci95 is None and abs(one - two) <= _TIE:
            ci95 = _bound_equal(first, second, kind)
    return Difference(len(first), one - two, ci95, None)


def compute_pseudo_values(first: Sequence[Ratio], second: Sequence[Ratio]) -> Floats:
    """Compute the pseudo-value of each of at least two pairs: P D - (P - 1) D(i), shape (pairs,)."""
    return _compute_own_values(first) - _compute_own_values(second)


def _compute_own_values(sample: Sequence[Ratio]) -> Floats:
    """Compute the pseudo-value of each persona of one chatbot; of a single one, its ratio."""
    over, under = split_columns(sample)
    if len(sample) == 1:
        return np.asarray(over / under)
    whole = over.sum() / under.sum()
    return np.asarray(len(sample) * whole - (len(sample) - 1) * leave_out_ratios(sample))


def flip_signs(values: Floats) -> list[float]:
    """Test whether numbers lie about 0: the share of flips of their signs with a mean as far from 0.

    Args:
        values: numbers in columns, each a test: shape (pairs, tests).
    """
    pairs, tests = values.shape
    observed = np.abs(values.sum(axis=0)) - _TIE * (np.abs(values).sum(axis=0) + _TIE)
    exact = 2**pairs <= FLIPS
    hits, total = np.zeros(tests, dtype=np.int64), 0
    for flipped in [np.arange(2**pairs)[:, None] >> np.arange(pairs) & 1] if exact else _draw_flips(pairs):
        signs = 1.0 - 2.0 * flipped
        hits += np.count_nonzero(np.abs(signs @ values) >= observed, axis=0)
        total += len(signs)
    return [float(hit / total if exact else (hit + 1) / (total + 1)) for hit in hits]


def _draw_flips(pairs: int) -> Iterator[Integers]:
    generator = np.random.default_rng(_SEED)
    for rows in _split_rows(pairs):
        yield generator.integers(0, 2, size=(rows, pairs))


def _bound_equal(first: Sequence[Ratio], second: Sequence[Ratio], kind: Kind) -> Bounds | None:
    """Bound the difference of two that do not differ at all, and not with any persona, by the bounds of each.

    None where these have none.
    """
    one, two = compute_interval(first, kind), compute_interval(second, kind)
    return None if one is None or two is None else (one[0] - two[1], one[1] - two[0])


def compare_unpaired(first: Sequence[Ratio], second: Sequence[Ratio], kind: Kind) -> Difference:
    """Compare the ratios of two groups of personas that have nobody, or too few, in common.

    The interval is made of the intervals of both (Zou and Donner 2008, Construction of confidence limits
    about effect measures: a general approach, Statistics in Medicine 27): a group without a hallucination has
    no standard error, but a bound. The test exchanges the personas' pseudo-values between the groups: all
    ways if they are at most `FLIPS`, else that many are drawn, and the p-value is (k + 1) / (n + 1). With the
    personas' turns themselves, one of a group with long conversations would weigh more in the other, which a
    test would find. Distances count in standard errors (Janssen 1997, Studentized permutation tests for
    non-i.i.d. hypotheses, Statistics and Probability Letters 36): else few personas that vary much, beside
    many that do not, would differ too often.

    >>> one, two = [Ratio(1, 1)] * 2, [Ratio(0, 1)] * 2
    >>> found = compare_unpaired(one, two, "rate")
    >>> found.difference, round(found.p_value or 0, 4)
    (1.0, 0.3333)
    """
    one, two = compute_ratio_of_sums(first), compute_ratio_of_sums(second)
    if one is None or two is None:
        return Difference(0, None, None, None)
    ci95 = None
    if min(len(first), len(second)) >= LEAST_FOR_INTERVAL:
        ci95 = _join_intervals((one, compute_interval(first, kind)), (two, compute_interval(second, kind)))
    p_value = _exchange_personas(_compute_own_values(first), _compute_own_values(second))
    return Difference(0, one - two, ci95, p_value)


def _join_intervals(first: tuple[float, Bounds | None], second: tuple[float, Bounds | None]) -> Bounds | None:
    """Return the interval of a difference of two numbers by their own; None where one of them has none."""
    (one, own), (two, other) = first, second
    if own is None or other is None:
        return None
    return (
        one - two - math.hypot(one - own[0], other[1] - two),
        one - two + math.hypot(own[1] - one, two - other[0]),
    )


def _exchange_personas(first: Floats, second: Floats) -> float | None:
    """Return the two-sided p-value of a difference of means; None with fewer than three numbers."""
    values, own = np.concatenate([first, second]), len(first)
    size = len(values)
    if size < 3:
        return None
    observed = _studentize(values, (np.arange(size) < own).astype(np.float64)[None])[0]
    exact = math.comb(size, own) <= FLIPS
    hits = drawn = 0
    for chosen in _enumerate_groups(size, own) if exact else _draw_groups(size, own):
        hits += int(np.count_nonzero(_studentize(values, chosen) >= observed * (1 - _TIE)))
        drawn += len(chosen)
    return hits / drawn if exact else (hits + 1) / (drawn + 1)


def _studentize(values: Floats, chosen: Floats) -> Floats:
    """Compute the distance of the means of chosen and other numbers in standard errors, shape (choices,).

    Args:
        chosen: 1 for those of the first group, else 0: shape (choices, values).
    """
    centred = values - values.mean()
    means, errors = [], []
    for rows in (chosen, 1 - chosen):
        number = rows[0].sum()
        means.append(rows @ centred / number)
        errors.append((rows @ centred**2 / number - means[-1] ** 2) / max(number - 1, 1))
    distance, error = np.abs(means[0] - means[1]), np.sqrt(np.maximum(errors[0] + errors[1], 0.0))
    nothing = _TIE * (np.abs(centred).mean() + _TIE)
    # Without any spread, another mean is infinitely far, and the same one is not.
    found: Floats = np.where(distance <= nothing, 0.0, distance / np.maximum(error, nothing))
    return found


def _enumerate_groups(size: int, own: int) -> Iterator[Floats]:
    """Yield all ways to choose `own` of so many, as rows of zeros and ones."""
    ways = combinations(range(size), own)
    while places := list(islice(ways, max(1, _CELLS // size))):
        chosen = np.zeros((len(places), size))
        np.put_along_axis(chosen, np.array(places, dtype=np.int64), 1.0, axis=1)
        yield chosen


def _draw_groups(size: int, own: int) -> Iterator[Floats]:
    generator = np.random.default_rng(_SEED)
    first = (np.arange(size) < own).astype(np.float64)
    for rows in _split_rows(size):
        yield generator.permuted(np.tile(first, (rows, 1)), axis=1)


def _split_rows(size: int) -> Iterator[int]:
    """Yield how many of `FLIPS` rows are drawn at once."""
    rows = max(1, _CELLS // size)
    for done in range(0, FLIPS, rows):
        yield min(rows, FLIPS - done)


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
