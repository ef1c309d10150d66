"""Curves and frontiers: exact points, and who is beaten."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from hallulab.simulator.bench.curves import POINTS, Priced, plot_frontier, plot_precision_recall
from hallulab.simulator.metrics.spending import find_pareto_front
from hallulab.simulator.show.html import get_style_classes
from hallulab.simulator.show.plot import BOX
from hallulab.simulator.statistics.detection import Sample
from tests.simulator.bench.material import known


def test_a_second_round_of_colours_is_hollow() -> None:
    found = [get_style_classes(number) for number in (0, 5, 6, 11, 12)]
    assert found == ["d0", "d5", "d0 hollow", "d5 hollow", "d0"]


def test_a_curve_goes_through_every_threshold() -> None:
    labels = np.array([True, False])
    sample = Sample(labels, np.array([0.9, 0.1]), labels, np.array([0, 1]))
    plot = plot_precision_recall("word", {"a": sample}, ["a"])
    right = BOX.width - BOX.right
    half = round(BOX.height - BOX.bottom - 0.5 * (BOX.height - 10 - BOX.bottom), 2)
    assert plot.lines[0].path == f"{right:g},10 {right:g},{half:g}"
    assert (plot.marks[0].x, plot.marks[0].y) == (right, 10.0)


def test_a_long_curve_is_thinned() -> None:
    labels = np.arange(5000) % 3 == 0
    sample = Sample(labels, np.linspace(0, 1, 5000), labels, np.zeros(5000, dtype=np.int64))
    path = plot_precision_recall("word", {"a": sample}, ["a"]).lines[0].path
    assert len(path.split()) == POINTS


def test_the_frontier_leaves_out_who_is_dearer_and_worse() -> None:
    rows = [
        Priced("a", 0.7, 1.0, 1.0),
        Priced("b", 0.6, 10.0, 1.0),
        Priced("c", 0.9, 100.0, 1.0),
        Priced("d", None, 1.0, 1.0),
    ]
    plot = known(plot_frontier(rows, "ms", ["a", "b", "c", "d"]))
    assert [mark.optimal for mark in plot.marks] == [True, False, True]
    assert [tick.label for tick in plot.x_ticks] == ["1", "10", "100"]
    assert plot.lines[0].path.startswith(f"{BOX.left:g},")


def test_nobody_with_that_cost_has_no_frontier() -> None:
    assert plot_frontier([Priced("a", 0.7, 0.0, 1.0), Priced("b", 0.7, None, 1.0)], "ms", ["a", "b"]) is None


def test_what_costs_nothing_stands_left_of_the_logarithmic_axis_and_beats_the_dearer() -> None:
    rows = [Priced("a", 0.9, 0.0, 1.0), Priced("b", 0.8, 10.0, 1.0), Priced("c", 0.95, 100.0, 1.0)]
    plot = known(plot_frontier(rows, "ms", ["a", "b", "c"]))
    assert [tick.label for tick in plot.x_ticks] == ["0", "10", "100"]
    assert [mark.x for mark in plot.marks] == [tick.at for tick in plot.x_ticks]
    assert [mark.optimal for mark in plot.marks] == [True, False, True]
    assert plot.marks[0].title == "a: AUROC 0.900, ms 0"


def test_who_scored_fewer_replies_beats_nobody_who_scored_more() -> None:
    rows = [Priced("a", 1.0, 1.0, 0.02), Priced("b", 0.9, 10.0, 1.0)]
    plot = known(plot_frontier(rows, "ms", ["a", "b"]))
    assert [mark.optimal for mark in plot.marks] == [True, True]
    assert plot.marks[0].title == "a: AUROC 1.000, ms 1, coverage 2.0%"


def test_equal_choices_are_both_optimal_and_a_dearer_equal_is_not() -> None:
    choices = [(0.5, -1.0), (0.5, -1.0), (0.5, -2.0), (None, -0.1)]
    assert find_pareto_front(choices) == [True, True, False, False]


@given(st.lists(st.tuples(st.integers(0, 5), st.integers(0, 5)), min_size=1))
def test_each_choice_is_optimal_or_beaten_by_one_that_is(points: list[tuple[int, int]]) -> None:
    optimal = find_pareto_front(points)
    front = [point for point, best in zip(points, optimal, strict=True) if best]
    assert all(
        best or any(q >= point[0] and c >= point[1] and (q, c) != point for q, c in front)
        for point, best in zip(points, optimal, strict=True)
    )
