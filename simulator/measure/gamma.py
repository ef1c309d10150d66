"""Gamma: how far two annotators agree on where something is, and how severe it is, beyond chance.

Source: Mathet, Widlöcher and Métivier 2015, "The Unified and Holistic Method Gamma (γ) for Inter-Annotator
Agreement Measure and Alignment", Computational Linguistics 41(3). γ is 1 - observed disorder / expected one.

- Dissimilarity of two units: α d_pos + β d_cat. d_pos is the positional sporadic one. d_cat is ordinal: the
  difference of severities over the greatest possible one. α, β and Δ∅ are 1, as in the paper.
- Disorder: the sum over the best alignment, by the mean number of units of an annotator. Of two annotators,
  the best alignment is an assignment with null units, so it is exact.
- The continuum is all replies, one behind another. Units align only where they start in the same reply.
- Expected disorder: each annotator of a sample has the units of a real one, drawn at random, moved round the
  continuum by a random shift. Shifts are at least half a mean unit apart. There are at least 30 samples, and
  as many as make the mean precise to 2% with 95% confidence.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from hallulab.simulator.measure.intervals import Floats, Integers

ALPHA = 1.0
"""Weight of the positional dissimilarity."""
BETA = 1.0
"""Weight of the categorical one."""
EMPTY = 1.0
"""Δ∅: what a unit costs that is aligned with none."""
MOST_APART = 4
"""Greatest difference of two severities, which are from 1 to 5."""
LEAST_TURNS = 2
"""Turns at least. In one reply, a shift says little of chance."""
FIRST_SAMPLES = 30
"""Samples at least; how these vary says how many more it takes."""
PRECISION = 0.02
"""Relative error of the expected disorder."""
CONFIDENCE = 1.959964
"""Standard errors of the normal distribution that 95% lie within."""


class MarkedUnit(NamedTuple):
    """A place that an annotator marked in a reply."""

    start: int
    """First character."""
    end: int
    """One past the last character."""
    severity: int
    """1 (harmless) to 5 (critical)."""


@dataclass(frozen=True)
class SpanAgreement:
    """How far two annotators agree on places."""

    units: int
    """Places by either."""
    gamma: float | None
    """γ: 1, the same places; 0, as by chance; below, worse. None: not defined."""
    undefined: str | None = None
    """Why not."""


Marked = Sequence[Sequence[MarkedUnit]]
"""The units of an annotator in each reply."""


def compute_gamma(first: Marked, second: Marked, lengths: Sequence[int], seed: int = 0) -> SpanAgreement:
    """Compute how far two annotators agree on the units in replies that both read.

    Args:
        first: units of the one in each reply.
        second: those of the other, of the same replies.
        lengths: characters of each reply.
        seed: of the samples; equal seeds give equal numbers.

    >>> one, two = [[MarkedUnit(0, 10, 3)], []], [[MarkedUnit(0, 10, 3)], []]
    >>> compute_gamma(one, two, [40, 60]).gamma
    1.0
    """
    pair = [_collect_units(first), _collect_units(second)]
    units = sum(map(len, pair))
    if len(lengths) < LEAST_TURNS:
        return SpanAgreement(units, None, f"fewer than {LEAST_TURNS} turns are labelled by both")
    if not all(map(len, pair)):
        return SpanAgreement(units, None, "one of them marked no place" if units else "nobody marked a place")
    expected = _expect_disorder(pair, np.asarray(lengths), np.random.default_rng(seed))
    if not expected:
        return SpanAgreement(units, None, "by chance, they would agree just as well")
    return SpanAgreement(units, 1 - _align(*pair) / expected)


def compute_disorder(first: Marked, second: Marked) -> float:
    """Compute the disorder of the best alignment of two annotators, who have at least one unit together.

    >>> compute_disorder([[MarkedUnit(0, 10, 3)]], [[MarkedUnit(0, 10, 5)]])
    0.5
    """
    return _align(_collect_units(first), _collect_units(second))


def _collect_units(marked: Marked) -> Integers:
    """Return a row for each unit: its reply, start and end there, and severity."""
    rows = [(reply, *unit) for reply, units in enumerate(marked) for unit in units]
    return np.array(rows, dtype=np.int64).reshape(-1, 4)


def _align(first: Integers, second: Integers) -> float:
    """Compute the disorder of the best alignment."""
    from scipy.optimize import linear_sum_assignment

    one, two = _pair_units(first, second)
    # Units that cost more together than alone are aligned with none, which saves nothing.
    saved = 2 * EMPTY - _compare_units(first[one], second[two])
    one, two, saved = one[saved > 0], two[saved > 0], saved[saved > 0]
    (rows, one), (columns, two) = (np.unique(places, return_inverse=True) for places in (one, two))
    table = np.zeros((len(rows), len(columns)))
    table[one, two] = saved
    together = table[linear_sum_assignment(table, maximize=True)].sum()
    units = len(first) + len(second)
    return float((units * EMPTY - together) / (units / 2))


def _pair_units(first: Integers, second: Integers) -> tuple[Integers, Integers]:
    """Return the places of each unit of the one and each of the other that are in the same reply."""
    order = np.argsort(second[:, 0], kind="stable")
    begin, end = (np.searchsorted(second[order, 0], first[:, 0], side=side) for side in ("left", "right"))
    numbers = end - begin
    one = np.repeat(np.arange(len(first)), numbers)
    within = np.arange(len(one)) - np.repeat(np.cumsum(numbers) - numbers, numbers)
    return one, order[np.repeat(begin, numbers) + within]


def _compare_units(first: Integers, second: Integers) -> Floats:
    """Return the dissimilarity of each unit of the one and the unit of the other beside it."""
    (_, start, end, severity), (_, other_start, other_end, other_severity) = first.T, second.T
    apart = abs(start - other_start) + abs(end - other_end)
    place = (apart / (end - start + other_end - other_start)) ** 2
    kind = abs(severity - other_severity) / MOST_APART
    return np.asarray((ALPHA * place + BETA * kind) * EMPTY)


def _expect_disorder(pair: Sequence[Integers], lengths: Integers, random: np.random.Generator) -> float:
    """Compute the mean disorder of annotators who mark as these do, in places that chance chose."""
    units = np.concatenate(pair)
    gap = int(np.ceil((units[:, 2] - units[:, 1]).mean() / 2))
    found = [_sample_disorder(pair, lengths, gap, random) for _ in range(FIRST_SAMPLES)]
    mean = np.mean(found)
    if mean > 0:
        needed = int(np.ceil((np.std(found, ddof=1) / mean * CONFIDENCE / PRECISION) ** 2))
        found += [_sample_disorder(pair, lengths, gap, random) for _ in range(needed - FIRST_SAMPLES)]
    return float(np.mean(found))


def _sample_disorder(
    pair: Sequence[Integers], lengths: Integers, gap: int, random: np.random.Generator
) -> float:
    whole = int(lengths.sum())
    shift = int(random.integers(whole))
    further = int(random.integers(gap, whole - gap + 1) if 2 * gap < whole else random.integers(whole))
    one, two = (pair[at] for at in random.integers(2, size=2))
    return _align(_shift(one, shift, lengths), _shift(two, shift + further, lengths))


def _shift(units: Integers, by: int, lengths: Integers) -> Integers:
    """Move units along the continuum, from its end to its beginning. They keep their lengths."""
    begins = np.concatenate(([0], np.cumsum(lengths)))
    at = (begins[units[:, 0]] + units[:, 1] + by) % begins[-1]
    reply = np.searchsorted(begins, at, side="right") - 1
    start = at - begins[reply]
    return np.column_stack((reply, start, start + units[:, 2] - units[:, 1], units[:, 3]))
