"""A run's numbers corrected for a detector's mistakes: Rogan and Gladen's equation, and its limits."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from simulator.measure.prevalence import Accuracy, Flags, PairCounts, corrected


def accuracy(errors: int, twins: int, error_spans: int, twin_spans: int, groups: int = 10) -> Accuracy:
    """Ten pairs a group, with as many flagged as told."""
    each = PairCounts(
        pairs=10,
        errors_flagged=errors,
        twins_flagged=twins,
        error_spans=error_spans,
        twin_spans=twin_spans,
    )
    return Accuracy(detector="d", version="1", all_pairs=10 * groups, groups=(each,) * groups)


def test_share_and_count_are_solved_for_the_true_ones() -> None:
    # Sensitivity 0.8 and specificity 0.9; 0.9 spans in an error, 0.1 in a twin.
    found = corrected([Flags(2, 1, 1)] * 5 + [Flags(2, 2, 3)] * 5, accuracy(8, 1, 9, 1))
    assert (found.pairs, found.sensitivity, found.specificity) == (100, 0.8, 0.9)
    assert (found.flagged_turns, found.hallucinated_turns) == (0.75, round((0.75 - 0.1) / 0.7, 6))
    assert (found.hpt_1, found.corrected_hpt_1) == (1.0, (1.0 - 0.1) / 0.8)
    assert (found.clipped, found.not_corrected, found.no_interval) == (None, None, None)
    low, high = found.hallucinated_turns_ci95 or (0, 0)
    assert low < found.hallucinated_turns < high <= 1  # type: ignore[operator]


@pytest.mark.parametrize(
    ("flagged", "share", "clipped"), [(0, 0.0, "below 0"), (2, 1.0, "above 1"), (1, 0.571429, None)]
)
def test_a_share_outside_of_0_and_1_is_clipped_and_said(
    flagged: int, share: float, clipped: str | None
) -> None:
    found = corrected([Flags(2, flagged, flagged)] * 6, accuracy(8, 1, 9, 1))
    assert (found.hallucinated_turns, found.clipped) == (share, clipped)


def test_a_count_is_not_below_zero() -> None:
    assert corrected([Flags(2, 0, 0)] * 6, accuracy(8, 1, 9, 1)).corrected_hpt_1 == 0.0


@pytest.mark.parametrize("groups", [accuracy(5, 5, 9, 1), accuracy(8, 1, 3, 3), accuracy(1, 8, 1, 9)])
def test_flags_that_do_not_tell_errors_from_clean_replies_correct_nothing(groups: Accuracy) -> None:
    found = corrected([Flags(2, 1, 1)] * 6, groups)
    assert found.not_corrected is not None
    assert "sensitivity + specificity must be above 1" in found.not_corrected
    assert (found.hallucinated_turns, found.corrected_hpt_1) == (None, None)
    assert found.flagged_turns == 0.5


def test_nothing_scored_or_measured_has_no_numbers() -> None:
    nothing = corrected([], accuracy(8, 1, 9, 1))
    assert (nothing.flagged_turns, nothing.not_corrected) == (None, "no turn was scored")
    unmeasured = corrected([Flags(2, 1, 1)], accuracy(8, 1, 9, 1, groups=0))
    assert (unmeasured.sensitivity, unmeasured.specificity, unmeasured.flagged_turns) == (None, None, 0.5)
    assert unmeasured.not_corrected == "no pair of a planted error and its twin was scored"


def test_few_conversations_or_groups_have_no_interval() -> None:
    few = corrected([Flags(2, 1, 1)] * 5, accuracy(8, 1, 9, 1))
    assert (few.hallucinated_turns_ci95, few.corrected_hpt_1_ci95) == (None, None)
    assert few.no_interval == "5 conversations; 6 needed for an interval"
    lean = corrected([Flags(2, 1, 1)] * 6, accuracy(8, 1, 9, 1, groups=5))
    assert lean.no_interval == "5 planted groups; 6 needed for an interval"


def test_a_specificity_of_1_is_not_certain() -> None:
    """Conversations all alike: only what is not known of the detector spreads."""
    found = corrected([Flags(10, 5, 5)] * 8, accuracy(9, 0, 9, 0))
    assert found.hallucinated_turns == round(0.5 / 0.9, 6)
    low, high = found.hallucinated_turns_ci95 or (0, 0)
    assert 0.45 < low < 0.55 < high < 0.62


@given(st.integers(0, 10), st.integers(6, 10), st.integers(0, 4))
def test_a_detector_without_mistakes_is_right_as_it_is(flagged: int, found: int, wrong: int) -> None:
    exact = corrected([Flags(10, flagged, flagged)] * 6, accuracy(10, 0, 10, 0))
    assert exact.hallucinated_turns == exact.flagged_turns == flagged / 10
    biased = corrected([Flags(10, flagged, flagged)] * 6, accuracy(found, wrong, found, wrong))
    solved = (flagged - wrong) / (found - wrong)
    assert biased.hallucinated_turns == round(min(max(solved, 0.0), 1.0), 6)
