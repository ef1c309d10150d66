"""A run's numbers corrected for a detector's mistakes: Rogan and Gladen's equation, and its limits."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hallulab.simulator.metrics.known_errors import (
    Accuracy,
    PairCounts,
    build_errors,
    derive_from_planted_errors,
)
from hallulab.simulator.statistics import prevalence as spreading
from hallulab.simulator.statistics.intervals import Floats
from hallulab.simulator.statistics.prevalence import (
    compute_jackknife_error,
    draw_prevalences,
    draw_t_steps,
    draw_weighed_sums,
    move_by_errors,
    solve_by_flags,
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
        error_sentences=20,
        twin_sentences=20,
    )
    return Accuracy(detector="d", version="1", all_pairs=10 * groups, groups=(each,) * groups)


def of(*totals: float) -> Floats:
    return np.array(totals, dtype=np.float64)


def test_planted_errors_say_what_a_clean_sentence_and_an_error_add() -> None:
    """Two spans in 20 clean sentences; 14 spans in 20 with ten errors: 2 of these, so an error adds 1.2."""
    known = derive_from_planted_errors(accuracy(8, 1, 14, 2))
    assert known.accuracy == (0.8, 0.9)
    assert known.unit_rates.value == pytest.approx([0.1, 1.2])
    assert solve_prevalence(of(10, 60, 30), known.unit_rates.value) == pytest.approx((3 - 0.6) / 1.2)


def test_of_planted_errors_each_of_a_turn_may_be_flagged() -> None:
    """Of replies of two sentences, 0.9 of the clean ones and 0.9 · (1 - s) = 0.2 of the others pass."""
    found = derive_from_planted_errors(accuracy(8, 1, 9, 1)).reply_rates.value
    assert found == pytest.approx([-math.log(0.9) / 2, 7 / 9])
    # 1.5 errors a turn, in turns of four sentences.
    said = 1 - 0.9**2 * math.exp(-1.5 * 7 / 9)
    assert solve_by_flags(of(10, 40, 10 * said), found) == pytest.approx(1 - math.exp(-1.5))


def test_a_calibration_is_solved_for_the_share_of_wrong_replies() -> None:
    known = build_errors("calibration", [[10, 1, 20, 10, 8, 20]] * 2, [[20, 2, 10, 9, 10]] * 2)
    assert known.reply_rates.value == pytest.approx([0.1, 0.7])
    assert solve_prevalence(of(20, 20, 15), known.reply_rates.value) == pytest.approx((0.75 - 0.1) / 0.7)
    assert known.unit_rates.value == pytest.approx([0.1, 0.8])


def test_of_sentences_what_clean_ones_add_depends_on_the_length_of_replies() -> None:
    """Ten turns of five sentences, 12 of 50 flagged: (12 - 0.1 · 50) / 10 / 0.7."""
    assert solve_prevalence(of(10, 50, 12), of(0.1, 0.7)) == pytest.approx(1.0)


def test_flags_that_do_not_tell_errors_from_clean_replies_solve_nothing() -> None:
    assert math.isnan(solve_prevalence(of(2, 2, 1), of(0.5, 0.0)))


def test_groups_without_pairs_are_left_out_and_none_have_no_rates() -> None:
    assert derive_from_planted_errors(accuracy(8, 1, 9, 1, groups=0)).accuracy is None
    measured = accuracy(8, 1, 9, 1)
    none = measured.groups[0].model_copy(update=dict.fromkeys(PairCounts.model_fields, 0))
    more = measured.model_copy(update={"groups": (none, *measured.groups)})
    assert len(derive_from_planted_errors(more).replies) == 10


def test_a_specificity_of_1_is_not_certain() -> None:
    """Conversations all alike: only what is not known of the detector spreads."""
    known = build_errors("calibration", [[10, 0, 10, 10, 9, 10]] * 10, [[10, 0, 10, 9, 10]] * 10)
    assert known.reply_rates.drawn[:, 0].max() > 0
    found = draw_prevalences(np.array([[10.0, 10.0, 5.0]] * 8), known.reply_rates, share=True)
    low, high = np.quantile(found, [0.025, 0.975])
    assert 0.4 < low < 0.55 < high < 0.62


@given(st.integers(0, 10), st.integers(6, 10), st.integers(0, 4))
def test_what_a_detector_says_of_known_errors_is_undone(true: int, found: int, wrong: int) -> None:
    said = true * found / 10 + (10 - true) * wrong / 10
    assert solve_prevalence(of(10, 10, said), of(wrong / 10, (found - wrong) / 10)) == pytest.approx(
        true / 10
    )


def test_the_jackknife_of_a_mean_is_its_standard_error() -> None:
    values = np.array([1.0, 2.0, 4.0, 9.0])
    without = (values.sum() - values) / 3
    assert compute_jackknife_error(without) == pytest.approx(values.std(ddof=1) / 2)


def test_numbers_move_on_the_scale_of_logarithms_and_shares_on_that_of_angles() -> None:
    steps = np.array([-1.0, 0.0, 1.0])
    assert move_by_errors(2.0, 2.0 * np.log(2), steps, share=False) == pytest.approx([1.0, 2.0, 4.0])
    assert move_by_errors(0.5, np.pi / 12, steps, share=True) == pytest.approx([0.25, 0.5, 0.75])
    assert move_by_errors(0.5, 1.0, steps, share=True) == pytest.approx([0.0, 0.5, 1.0])
    assert move_by_errors(0.0, 1.0, steps, share=False).tolist() == [0.0, 0.0, 0.0]
    assert move_by_errors(1.0, 1.0, steps, share=True).tolist() == [1.0, 1.0, 1.0]


@pytest.mark.parametrize("clusters", [8, 40])
def test_a_weighted_mean_varies_as_by_student_s_t(clusters: int) -> None:
    """The variance of t is (n - 1) / (n - 3) times that of a mean of n."""
    values = np.arange(clusters, dtype=np.float64)
    number, total = draw_weighed_sums("groups", np.stack([np.ones(clusters), values], axis=1)).T
    drawn = total / number
    wanted = values.var(ddof=1) / clusters * (clusters - 1) / (clusters - 3)
    assert drawn.var() == pytest.approx(wanted, rel=0.1)


def test_equal_arguments_give_equal_draws() -> None:
    rows = np.eye(6)
    assert (draw_weighed_sums("groups", rows) == draw_weighed_sums("groups", rows)).all()
    assert (draw_weighed_sums("groups", rows) != draw_weighed_sums("personas", rows)).any()
    assert (draw_t_steps(5) == draw_t_steps(5)).all()


def test_many_clusters_are_weighed_in_pieces_with_the_same_weights(monkeypatch: pytest.MonkeyPatch) -> None:
    at_once = draw_weighed_sums("groups", np.eye(7))
    monkeypatch.setattr(spreading, "_CELLS", 100)
    assert (draw_weighed_sums("groups", np.eye(7)) == at_once).all()
