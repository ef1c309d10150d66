"""Agreement of raters on the same units: Cohen's kappa, Krippendorff's alpha, and gamma of marked places.

A unit that a rater did not rate has no rating from it. Of detectors, units are turns and ratings are flags.

Gamma says how far two annotators agree on where something is, and how severe it is, beyond chance (Mathet,
Widlöcher and Métivier 2015, "The Unified and Holistic Method Gamma (γ) for Inter-Annotator Agreement Measure
and Alignment", Computational Linguistics 41(3)). γ is 1 - observed disorder / expected one.

- Dissimilarity of two units: α d_pos + β d_cat. d_pos is the positional sporadic one. d_cat is ordinal: the
  difference of severities over the greatest possible one. α, β and Δ∅ are 1, as in the paper.
- Disorder: the sum over the best alignment, by the mean number of units of an annotator. Of two annotators,
  the best alignment is an assignment with null units, so it is exact. Only units near each other are paired.
- The continuum is all replies, one behind another. Units align only where they start in the same reply.
- Expected disorder: each annotator of a sample has the units of a real one, drawn at random, moved round the
  continuum by a random shift. Shifts are at least half a mean unit apart. There are at least 30 samples, and
  as many as make the mean precise to 2% with 95% confidence.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from itertools import repeat
from typing import NamedTuple

import numpy as np

from hallulab.simulator.statistics.intervals import Floats, Integers

Ratings = Sequence[Hashable | None]
"""One rater's rating of each unit, in the same order for all raters; None: no rating."""


def compute_cohens_kappa(first: Ratings, second: Ratings, times: Sequence[int] | None = None) -> float | None:
    """Compute the agreement beyond chance on the units that both rate (Cohen 1960).

    None without such units, or where all ratings are the same.

    Args:
        times: how many units each rating stands for; None: one.

    >>> compute_cohens_kappa([True, True, False, False], [True, False, False, False])
    0.5
    """
    from sklearn.metrics import cohen_kappa_score

    both = count_pairs(first, second, times)
    ratings = sorted({rating for pair in both for rating in pair}, key=str)
    if len(ratings) < 2:
        return None
    ones, twos = zip(*([ratings.index(rating) for rating in pair] for pair in both), strict=True)
    return float(cohen_kappa_score(ones, twos, sample_weight=list(both.values())))


def compute_krippendorffs_alpha(
    raters: Sequence[Ratings], times: Sequence[int] | None = None
) -> float | None:
    """Compute Krippendorff's alpha for nominal data. Ratings may be missing.

    Source: Krippendorff, "Computing Krippendorff's Alpha-Reliability", 2011. Units with fewer than two
    ratings are left out. None without any other unit, or where all ratings are the same: then no disagreement
    can be expected.

    >>> compute_krippendorffs_alpha([[True, False, False], [True, False, None]])
    1.0

    Args:
        times: how many units each rating stands for; None: one.
    """
    units = [(unit, number) for unit, number in count_units(raters, times).items() if len(unit) > 1]
    totals = Counter[Hashable]()
    for unit, number in units:
        for rating in unit:
            totals[rating] += number
    n = totals.total()
    expected = n * n - sum(count * count for count in totals.values())
    if not expected:
        return None
    observed = math.fsum(
        number * (len(unit) ** 2 - sum(count * count for count in Counter(unit).values())) / (len(unit) - 1)
        for unit, number in units
    )
    return 1 - (n - 1) * observed / expected


def count_units(
    raters: Sequence[Ratings], times: Sequence[int] | None = None
) -> Counter[tuple[Hashable, ...]]:
    """Count the units by the ratings that they have."""
    found = Counter[tuple[Hashable, ...]]()
    units = list(zip(*raters, strict=True))
    for unit, number in zip(units, times or repeat(1, len(units)), strict=True):
        found[tuple(rating for rating in unit if rating is not None)] += number
    return found


def count_pairs(
    first: Ratings, second: Ratings, times: Sequence[int] | None = None
) -> Counter[tuple[Hashable, ...]]:
    """Count the units that both rate by these ratings."""
    found = count_units([first, second], times)
    return Counter({pair: number for pair, number in found.items() if len(pair) == 2})


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
_FARTHEST = (2**0.5 + 1) / 2 + 1e-9
"""Lengths of two units together by which their starts may differ, see `_pair_units`."""
AT_ONCE = 200
"""Pairs of units that are assigned together; groups of more are not cut."""
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
    return float(_align_all([(first, second)])[0])


def _align_all(pairs: Sequence[tuple[Integers, Integers]]) -> Floats:
    """Compute the disorder of the best alignment of each pair of annotators, shape (pairs,)."""
    apart = 1 + max(int(side[:, 0].max(initial=0)) for pair in pairs for side in pair)
    # The replies of the pairs one behind another: the alignment of all is that of each.
    first, second = (
        np.concatenate([pair[side] + [number * apart, 0, 0, 0] for number, pair in enumerate(pairs)])
        for side in (0, 1)
    )
    one, two = _pair_units(first, second)
    # Units that cost more together than alone are aligned with none, which saves nothing.
    saved = 2 * EMPTY - _compare_units(first[one], second[two])
    one, two, saved = one[saved > 0], two[saved > 0], saved[saved > 0]
    chosen = _choose_pairs(one, two, saved)
    together = np.bincount(first[one[chosen], 0] // apart, saved[chosen], minlength=len(pairs))
    units = np.array([len(one) + len(two) for one, two in pairs])
    return np.asarray((units * EMPTY - together) / (units / 2))


def _choose_pairs(one: Integers, two: Integers, saved: Floats) -> Integers:
    """Return the places of the pairs that together save most, no unit in two of them.

    Units that no pair joins, directly or by others, are assigned apart from each other: marks are mostly few
    in one place, and the time of an assignment grows with the cube of its units.

    Args:
        one: (pairs,): a unit of the one.
        two: (pairs,): a unit of the other, which may be aligned with it.
        saved: (pairs,): what that saves.
    """
    from scipy.sparse import coo_array
    from scipy.sparse.csgraph import connected_components

    if not len(one):
        return np.zeros(0, dtype=np.int64)
    (rows, row), (columns, column) = (np.unique(places, return_inverse=True) for places in (one, two))
    size = len(rows) + len(columns)
    graph = coo_array((saved, (row, len(rows) + column)), shape=(size, size))
    group = connected_components(graph, directed=False)[1][row]
    lone = np.bincount(group)[group] == 1
    order = np.argsort(group[~lone], kind="stable")
    if not len(order):
        return np.flatnonzero(lone)
    row, column, saved, group = (found[~lone][order] for found in (row, column, saved, group))
    begins = np.flatnonzero(np.diff(group, prepend=-1))
    # As many whole groups together as the assignment takes quickly.
    cuts = begins[np.flatnonzero(np.diff(begins // AT_ONCE, prepend=-1))]
    parts = np.split(np.arange(len(order)), cuts[1:])
    found = [part[_assign(row[part], column[part], saved[part])] for part in parts]
    return np.concatenate([np.flatnonzero(lone), np.flatnonzero(~lone)[order[np.concatenate(found)]]])


def _assign(one: Integers, two: Integers, saved: Floats) -> Integers:
    """Return the places of the pairs of the best assignment. Arguments as in `_choose_pairs`."""
    from scipy.sparse import csr_array
    from scipy.sparse.csgraph import min_weight_full_bipartite_matching

    (rows, row), (columns, column) = (np.unique(places, return_inverse=True) for places in (one, two))
    alone = np.arange(len(rows))
    # Each unit of the one may be aligned with none, its own column. No cost is 0, which would be no pair.
    costs = np.concatenate((3 * EMPTY - saved, np.full(len(rows), 3 * EMPTY)))
    at = np.concatenate((row, alone)), np.concatenate((column, len(columns) + alone))
    table = csr_array((costs, at), shape=(len(rows), len(columns) + len(rows)))
    found = min_weight_full_bipartite_matching(table)[1]
    return np.flatnonzero(found[row] == column)


def _pair_units(first: Integers, second: Integers) -> tuple[Integers, Integers]:
    """Return the places of each unit of the one and each of the other that may be aligned with it.

    They are in the same reply, and not so far apart that they would cost more together than alone:
    (|s| + |e|) / (a + b) is below √2, for differences s of starts and e of ends, and lengths a and b. So |s|
    is below (√2 + 1) / 2 · (a + b). Units of about equal length are looked up together, so that one long unit
    does not bring all of its reply.
    """
    length, other_length = first[:, 2] - first[:, 1], second[:, 2] - second[:, 1]
    octave = np.floor(np.log2(np.maximum(other_length, 1)))
    whole = int(max(first[:, 2].max(initial=0), second[:, 2].max(initial=0)))
    # Replies so far apart that no unit reaches into another one.
    width = 8 * whole + 8
    found: list[tuple[Integers, Integers]] = []
    for one_octave in np.unique(octave):
        places = np.flatnonzero(octave == one_octave)
        starts = second[places, 0] * width + second[places, 1]
        order = np.argsort(starts, kind="stable")
        reach = _FARTHEST * (length + other_length[places].max())
        at = first[:, 0] * width + first[:, 1]
        begin = np.searchsorted(starts[order], at - reach, side="left")
        numbers = np.searchsorted(starts[order], at + reach, side="right") - begin
        one = np.repeat(np.arange(len(first)), numbers)
        within = np.arange(len(one)) - np.repeat(np.cumsum(numbers) - numbers, numbers)
        found.append((one, places[order[np.repeat(begin, numbers) + within]]))
    return np.concatenate([one for one, _ in found]), np.concatenate([two for _, two in found])


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
    found = _sample_disorders(FIRST_SAMPLES, pair, lengths, gap, random)
    mean = np.mean(found)
    if mean > 0:
        needed = int(np.ceil((np.std(found, ddof=1) / mean * CONFIDENCE / PRECISION) ** 2))
        found = np.append(found, _sample_disorders(needed - FIRST_SAMPLES, pair, lengths, gap, random))
    return float(np.mean(found))


def _sample_disorders(
    number: int, pair: Sequence[Integers], lengths: Integers, gap: int, random: np.random.Generator
) -> Floats:
    drawn = [_draw_sample(pair, lengths, gap, random) for _ in range(number)]
    return np.concatenate(
        [np.zeros(0)] + [_align_all(drawn[at : at + FIRST_SAMPLES]) for at in range(0, number, FIRST_SAMPLES)]
    )


def _draw_sample(
    pair: Sequence[Integers], lengths: Integers, gap: int, random: np.random.Generator
) -> tuple[Integers, Integers]:
    whole = int(lengths.sum())
    shift = int(random.integers(whole))
    further = int(random.integers(gap, whole - gap + 1) if 2 * gap < whole else random.integers(whole))
    one, two = (pair[at] for at in random.integers(2, size=2))
    return _shift(one, shift, lengths), _shift(two, shift + further, lengths)


def _shift(units: Integers, by: int, lengths: Integers) -> Integers:
    """Move units along the continuum, from its end to its beginning. They keep their lengths."""
    begins = np.concatenate(([0], np.cumsum(lengths)))
    at = (begins[units[:, 0]] + units[:, 1] + by) % begins[-1]
    reply = np.searchsorted(begins, at, side="right") - 1
    start = at - begins[reply]
    return np.column_stack((reply, start, start + units[:, 2] - units[:, 1], units[:, 3]))
