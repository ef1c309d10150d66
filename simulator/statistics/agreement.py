"""Agreement of raters on the same units: Cohen's kappa, Krippendorff's alpha.

A unit that a rater did not rate has no rating from it. Of detectors, units are turns and ratings are flags.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Hashable, Sequence
from itertools import repeat

Ratings = Sequence[Hashable | None]
"""One rater's rating of each unit, in the same order for all raters; None: no rating."""


def compute_cohens_kappa(first: Ratings, second: Ratings, times: Sequence[int] | None = None) -> float | None:
    """Compute the agreement beyond chance on the units that both rate (Cohen 1960).

    None without such units, or where all ratings are the same.

    Args:
        first: ratings by the one.
        second: ratings by the other.
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
        raters: the ratings of each.
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
