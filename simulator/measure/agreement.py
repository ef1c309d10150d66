"""Agreement of raters on the same units: Cohen's kappa, Krippendorff's alpha.

A unit that a rater did not rate has no rating from it. Of detectors, units are turns and ratings are flags.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Sequence

Ratings = Sequence[Hashable | None]
"""One rater's rating of each unit, in the same order for all raters; None: no rating."""


def compute_cohens_kappa(first: Ratings, second: Ratings) -> float | None:
    """Compute the agreement beyond chance on the units that both rate (Cohen 1960).

    None without such units, or where all ratings are the same.

    >>> compute_cohens_kappa([True, True, False, False], [True, False, False, False])
    0.5
    """
    from sklearn.metrics import cohen_kappa_score

    both = pair_ratings(first, second)
    ratings = sorted({rating for pair in both for rating in pair}, key=str)
    if len(ratings) < 2:
        return None
    ones, twos = zip(*([ratings.index(rating) for rating in pair] for pair in both), strict=True)
    return float(cohen_kappa_score(ones, twos))


def compute_krippendorffs_alpha(raters: Sequence[Ratings]) -> float | None:
    """Compute Krippendorff's alpha for nominal data. Ratings may be missing.

    Source: Krippendorff, "Computing Krippendorff's Alpha-Reliability", 2011. Units with fewer than two
    ratings are left out. None without any other unit, or where all ratings are the same: then no disagreement
    can be expected.

    >>> compute_krippendorffs_alpha([[True, False, False], [True, False, None]])
    1.0
    """
    units = [unit for unit in collect_units(raters) if len(unit) > 1]
    totals = Counter(rating for unit in units for rating in unit)
    n = sum(totals.values())
    expected = n * n - sum(count * count for count in totals.values())
    if not expected:
        return None
    observed = sum(
        (len(unit) ** 2 - sum(count * count for count in Counter(unit).values())) / (len(unit) - 1)
        for unit in units
    )
    return 1 - (n - 1) * observed / expected


def collect_units(raters: Sequence[Ratings]) -> list[list[Hashable]]:
    """Return the ratings of each unit."""
    return [[rating for rating in unit if rating is not None] for unit in zip(*raters, strict=True)]


def pair_ratings(first: Ratings, second: Ratings) -> list[tuple[Hashable, Hashable]]:
    """Return the ratings of the units that both rate."""
    pairs = zip(first, second, strict=True)
    return [(x, y) for x, y in pairs if x is not None and y is not None]
