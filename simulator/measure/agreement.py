"""Agreement of detectors on which turns to flag: observed agreement, Cohen's kappa, Krippendorff's alpha.

Each turn is a unit and each detector a rater. A turn that a detector did not score has no rating from it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Mapping, Sequence
from itertools import combinations

from hallulab.scenarios.transcript import Frozen
from hallulab.simulator.measure.metrics import ByDetector
from hallulab.simulator.measure.numbers import Rounded

Ratings = Sequence[Hashable | None]
"""One rater's rating of each unit, in the same order for all raters; None: no rating."""


class PairAgreement(Frozen):
    """Two detectors on the turns that both scored."""

    a: str
    """First detector."""
    b: str
    """Second detector."""
    turns: int
    """Turns that both scored."""
    agreement: Rounded | None
    """Share of them on which the two flags are equal; None without such turns."""
    kappa: Rounded | None
    """Cohen's kappa; None where all ratings are equal, for example where neither ever flags."""


class Agreement(Frozen):
    """All detectors of a run on the same turns."""

    detectors: tuple[str, ...]
    """Their names."""
    turns: int
    """Turns that at least two of them scored."""
    alpha: Rounded | None
    """Krippendorff's alpha for nominal data; None without such turns, or where all ratings are the same."""
    pairs: tuple[PairAgreement, ...]
    """Every two detectors."""


class Flags:
    """Collects what detectors flag, conversation by conversation. Failures and abstentions are no ratings."""

    def __init__(self, detectors: Sequence[str]) -> None:
        self._raters: dict[str, list[bool | None]] = {name: [] for name in detectors}

    def add(self, verdicts: ByDetector) -> None:
        """Add the verdicts on a conversation."""
        for turn in sorted({turn for found in verdicts.values() for turn in found}):
            for name, ratings in self._raters.items():
                verdict = verdicts.get(name, {}).get(turn)
                ratings.append(None if verdict is None else verdict.flagged)

    def agreement(self) -> Agreement:
        """Compare the flags of the detectors."""
        return _compute_agreement(self._raters)


def _compute_agreement(flags: Mapping[str, Ratings]) -> Agreement:
    detectors, raters = list(flags), list(flags.values())
    pairs = []
    for (a, one), (b, two) in combinations(zip(detectors, raters, strict=True), 2):
        both = _pair_ratings(one, two)
        same = sum(x == y for x, y in both)
        pairs.append(
            PairAgreement(
                a=a,
                b=b,
                turns=len(both),
                agreement=same / len(both) if both else None,
                kappa=compute_cohens_kappa(one, two),
            )
        )
    return Agreement(
        detectors=tuple(detectors),
        turns=sum(len(unit) > 1 for unit in _collect_units(raters)),
        alpha=compute_krippendorffs_alpha(raters),
        pairs=tuple(pairs),
    )


def compute_cohens_kappa(first: Ratings, second: Ratings) -> float | None:
    """Compute the agreement beyond chance on the units that both rate (Cohen 1960).

    None without such units, or where all ratings are the same.

    >>> compute_cohens_kappa([True, True, False, False], [True, False, False, False])
    0.5
    """
    from sklearn.metrics import cohen_kappa_score

    both = _pair_ratings(first, second)
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
    units = [unit for unit in _collect_units(raters) if len(unit) > 1]
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


def _collect_units(raters: Sequence[Ratings]) -> list[list[Hashable]]:
    return [[rating for rating in unit if rating is not None] for unit in zip(*raters, strict=True)]


def _pair_ratings(first: Ratings, second: Ratings) -> list[tuple[Hashable, Hashable]]:
    pairs = zip(first, second, strict=True)
    return [(x, y) for x, y in pairs if x is not None and y is not None]
