"""A run's numbers corrected for a detector's mistakes: Rogan and Gladen's equation, and its limits."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hallulab.simulator.statistics.intervals import Floats
from hallulab.simulator.statistics.prevalence import (
    Accuracy,
    PairCounts,
    compute_rates,
    derive_from_planted_errors,
    draw_prevalences,
    draw_rates,
    solve_prevalence,
)


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


def of(*totals: float) -> Floats:
    return np.array(totals, dtype=np.float64)


def test_share_and_count_are_solved_for_the_true_ones() -> None:
    known = derive_from_planted_errors(accuracy(8, 1, 9, 1))
    of_replies, of_spans = compute_rates(known.replies), compute_rates(known.units)
    assert of_replies is not None
    assert of_spans is not None
    assert (of_replies.tolist(), of_spans.tolist(), known.unit) == ([0.1, 0.8], [0.1, 0.9], "reply")
    assert solve_prevalence(of(20, 20, 15), of_replies) == pytest.approx((0.75 - 0.1) / 0.7)
    assert solve_prevalence(of(20, 20, 20), of_spans) == pytest.approx((1.0 - 0.1) / 0.8)


def test_of_sentences_what_clean_ones_add_depends_on_the_length_of_replies() -> None:
    """Ten turns of five sentences, 12 of 50 flagged: (12 - 0.1 · 50) / 10 / (0.8 - 0.1)."""
    assert solve_prevalence(of(10, 50, 12), of(0.1, 0.8)) == pytest.approx(1.0)


def test_flags_that_do_not_tell_errors_from_clean_replies_solve_nothing() -> None:
    assert math.isnan(solve_prevalence(of(2, 2, 1), of(0.5, 0.5)))


def test_groups_without_pairs_are_left_out_and_none_have_no_rates() -> None:
    assert compute_rates(derive_from_planted_errors(accuracy(8, 1, 9, 1, groups=0)).replies) is None
    none = PairCounts(pairs=0, errors_flagged=0, twins_flagged=0, error_spans=0, twin_spans=0)
    groups = (none, *accuracy(8, 1, 9, 1).groups)
    assert (
        len(derive_from_planted_errors(accuracy(8, 1, 9, 1).model_copy(update={"groups": groups})).replies)
        == 10
    )


def test_a_specificity_of_1_is_not_certain() -> None:
    """Conversations all alike: only what is not known of the detector spreads."""
    known = derive_from_planted_errors(accuracy(9, 0, 9, 0))
    drawn = draw_rates(known.replies)
    assert drawn[:, 0].max() > 0
    found = draw_prevalences(np.array([[10.0, 10.0, 5.0]] * 8), of(0.0, 0.9), drawn, share=True)
    low, high = np.quantile(found, [0.025, 0.975])
    assert 0.4 < low < 0.55 < high < 0.62


@given(st.integers(0, 10), st.integers(6, 10), st.integers(0, 4))
def test_what_a_detector_says_of_known_errors_is_undone(true: int, found: int, wrong: int) -> None:
    said = true * found / 10 + (10 - true) * wrong / 10
    assert solve_prevalence(of(10, 10, said), of(wrong / 10, found / 10)) == pytest.approx(true / 10)
