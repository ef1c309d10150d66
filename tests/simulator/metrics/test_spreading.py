"""Errors by leaving clusters out, scales, weights."""

from __future__ import annotations

import numpy as np
import pytest

from hallulab.simulator.statistics import prevalence as spreading
from hallulab.simulator.statistics.prevalence import (
    compute_jackknife_error,
    compute_t_interval,
    draw_t_steps,
    draw_weighed_sums,
    move_by_errors,
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


def test_bounds_are_quantiles_of_student_s_t() -> None:
    low, high = compute_t_interval(1.0, 0.1, 5, share=False) or (0, 0)
    assert (np.log(low), np.log(high)) == (pytest.approx(-0.2570582), pytest.approx(0.2570582))


@pytest.mark.parametrize(
    ("value", "error", "share"), [(0.0, 0.1, False), (-1.0, 0.1, False), (1.0, 0.1, True), (0.5, 0.0, True)]
)
def test_at_the_end_of_the_range_or_without_an_error_there_are_none(
    value: float, error: float, share: bool
) -> None:
    assert compute_t_interval(value, error, 5, share=share) is None


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
