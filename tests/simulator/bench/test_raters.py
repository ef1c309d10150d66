"""How far raters agree, as a measure for detectors."""

from __future__ import annotations

import pytest

from hallulab.scenarios.labelled import LabelledReply, Ratings
from hallulab.simulator.bench.baselines import compute_rater_agreement
from tests.builders import labelled
from tests.simulator.bench.material import known


def rated(group: str, *values: float) -> LabelledReply:
    ratings = Ratings(values=values, clean_from=4)
    return labelled(label=ratings.hallucinated, ratings=ratings, group=group)


def test_raters_who_agree_are_as_good_as_can_be() -> None:
    found = known(
        compute_rater_agreement(
            [rated("a", 1, 1, 1), rated("a", 4, 4, 4), rated("b", 2, 2), rated("b", 4, 4, 4)]
        )
    )
    assert (found.replies, found.ratings, found.alpha) == (4, 11, 1.0)
    for against in (found.label, found.others):
        assert (against.auroc, against.f1, against.balanced_accuracy) == (1.0, 1.0, 1.0)
    # Two groups are too few for an interval.
    assert found.label.auroc_ci95 is None


def test_one_rating_is_held_against_the_label_and_against_the_other_ratings() -> None:
    found = known(compute_rater_agreement([rated("a", 3, 4, 4), rated("b", 1, 2, 4)]))
    # Label: the first reply is clean, the second is not. 3 is flagged wrongly, the second's 4 missed.
    assert found.label.balanced_accuracy == pytest.approx(2 / 3, abs=1e-6)
    # 3 clean and 1, 2 hallucinated are ranked right, as are both 4s of the first but against the 4.
    assert found.label.auroc == pytest.approx((2 * 3 + 0 + 2 * 0.5) / 9, abs=1e-6)
    # Others: of (4, 4) clean; of (3, 4) twice, (2, 4), (1, 4) and (1, 2) hallucinated.
    assert found.others.balanced_accuracy == pytest.approx((2 / 5 + 0) / 2, abs=1e-6)


def test_alpha_is_of_who_calls_a_reply_clean() -> None:
    found = known(
        compute_rater_agreement([rated("a", 3, 1), rated("b", 4, 4), rated("c", 4, 2), rated("d", 4, 4)])
    )
    # Krippendorff, nominal: n = 8, 3 flags and 5 passes, one unit of four in disagreement.
    assert found.alpha == pytest.approx(1 - 7 * 2 / (64 - 9 - 25), abs=1e-6)


def test_single_ratings_say_nothing_of_agreement() -> None:
    assert compute_rater_agreement([rated("a", 4), rated("b", 3)]) is None
