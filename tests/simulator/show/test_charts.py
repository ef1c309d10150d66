from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hallulab.simulator.show.charts import (
    DEPTH_BOX,
    LEFT,
    NARROWING_BOX,
    RIGHT,
    WIDTH,
    DepthPoint,
    DotPoint,
    NarrowingPoint,
    choose_axis_steps,
    choose_steps_around_zero,
    draw_depths,
    draw_dots,
    draw_narrowing,
    lay_out_depths,
    lay_out_dots,
    lay_out_narrowing,
)
from hallulab.simulator.show.html import shorten_name


@pytest.mark.parametrize(
    ("name", "shown"),
    [("support-bot-prompt", "support-bot-prompt"), ("support-bot-prompt-2", "support-b…-prompt-2")],
)
def test_names_that_begin_alike_are_told_apart(name: str, shown: str) -> None:
    assert shorten_name(name, 19) == shown


def test_an_open_axis_starts_at_zero() -> None:
    assert choose_axis_steps([0.3, 0.92], None) == (0.0, 0.2, 0.4, 0.6, 0.8, 1.0)


def test_a_bounded_axis_ends_at_its_bound() -> None:
    assert choose_axis_steps([71.5, 97.0], 100) == (70.0, 80.0, 90.0, 100.0)
    assert choose_axis_steps([93.2, 97.0], 100) == (90.0, 92.0, 94.0, 96.0, 98.0, 100.0)
    assert choose_axis_steps([100.0], 100) == (90.0, 92.0, 94.0, 96.0, 98.0, 100.0)


def test_an_axis_of_nothing() -> None:
    assert choose_axis_steps([], None) == (0.0, 1.0)
    assert choose_axis_steps([0.0], None) == (0.0, 0.02, 0.04, 0.06, 0.08, 0.1)


@given(st.lists(st.floats(0, 50), min_size=1, max_size=8))
def test_an_axis_holds_its_values_in_few_steps(values: list[float]) -> None:
    steps = choose_axis_steps(values, None)
    assert steps[0] <= min(values)
    assert steps[-1] >= max(values) - 1e-6
    assert 2 <= len(steps) <= 8


@pytest.mark.parametrize(
    ("values", "steps"),
    [
        ([], (-0.1, -0.05, 0.0, 0.05, 0.1)),
        ([0.31], (-0.4, -0.2, 0.0, 0.2, 0.4)),
        ([-3.0, 1.0], (-3.0, -2.0, -1.0, 0.0, 1.0, 2.0, 3.0)),
        ([0.6], (-0.6, -0.4, -0.2, 0.0, 0.2, 0.4, 0.6)),
    ],
)
def test_the_axis_has_round_steps_on_both_sides_of_0(values: list[float], steps: tuple[float, ...]) -> None:
    assert choose_steps_around_zero(values) == steps


def test_the_ends_of_the_axis_are_the_ends_of_the_plot() -> None:
    points = [DotPoint("a", "d", 0.0, None, "zero"), DotPoint("b", "d", 1.0, (0.5, 1.0), "one")]
    (one,), (other,) = (group.dots for group in lay_out_dots(points, (0.0, 0.5, 1.0), str).groups)
    middle = LEFT + (WIDTH - LEFT - RIGHT) / 2
    assert (one.x, one.low, one.high, one.title) == (LEFT, None, None, "zero")
    assert (other.x, other.low, other.high) == (WIDTH - RIGHT, middle, WIDTH - RIGHT)


def test_a_number_that_is_undefined_is_not_drawn_as_zero() -> None:
    points = [DotPoint("a <i>", "d", None, None, "not scored")]
    assert lay_out_dots(points, (0.0, 1.0), str).groups[0].dots[0].x is None
    svg = draw_dots("title", points, (0.0, 1.0), str)
    assert "a &lt;i&gt;" in svg
    assert "<circle" not in svg


BY_TURN = [
    DepthPoint("a", 0, "2", 0.5, None),
    DepthPoint("a", 0, "1", 1.0, (0.5, 2.0)),
    DepthPoint("a", 1, "1", None, None),
    DepthPoint("b", 1, "10 and later", 0.0, None),
]


def test_charts_by_turn_have_one_scale_and_lines_in_the_order_of_turns() -> None:
    (first, one), (second, other) = lay_out_depths(BY_TURN, ["d", "e"])
    assert (first, second) == ("a", "b")
    assert one.y_ticks == other.y_ticks
    assert [tick.label for tick in one.x_ticks] == ["1", "2", "10 and later"]
    [line] = one.lines
    assert [dot.title for dot in line.dots] == [
        "a, turn 1, d: 1.00, 95% interval 0.50 to 2.00",
        "a, turn 2, d: 0.50",
    ]
    assert line.dots[0].x < line.dots[1].x
    assert (line.dots[0].high, line.dots[1].high) == (DEPTH_BOX.top, None)
    assert other.lines[0].dots[0].y == DEPTH_BOX.height - DEPTH_BOX.bottom


def test_dots_of_two_detectors_at_one_turn_stand_apart() -> None:
    [(_, plot)] = lay_out_depths(
        [DepthPoint("a", 0, "1", 0.5, None), DepthPoint("a", 1, "1", 0.5, None)], ["d", "e"]
    )
    assert plot.lines[1].dots[0].x - plot.lines[0].dots[0].x == 7


def test_names_of_detectors_are_escaped() -> None:
    [(_, svg)] = draw_depths([DepthPoint("a<b>", 0, "1", 0.5, None)], ["<i>"])
    assert "a&lt;b&gt;, turn 1, &lt;i&gt;: 0.50" in svg
    assert "<i>" not in svg


NARROWING = [
    NarrowingPoint(4, 0.5, -2.0, 3.0, "first"),
    NarrowingPoint(8, None, -1.0, 1.0, "second"),
    NarrowingPoint(12, -0.5, -0.75, -0.25, "third"),
]


def test_a_band_narrows_around_the_difference_and_is_cut_at_the_edges() -> None:
    plot = lay_out_narrowing("a − b", NARROWING, 0.2)
    points = [tuple(map(float, point.split(","))) for point in plot.band.split()]
    heights = [low - high for (_, high), (_, low) in zip(points[:3], points[:2:-1], strict=True)]
    box = NARROWING_BOX
    assert heights[0] == heights[1] == box.height - box.top - box.bottom > heights[2]
    assert [mark[2] for mark in plot.marks] == ["first", "third"]
    assert plot.margins[0] < plot.zero < plot.margins[1] < plot.marks[-1][1]
    assert plot.label == "a − b, after each batch. The last one: third"


def test_a_pair_of_which_nothing_was_scored_is_drawn_without_a_line() -> None:
    plot = lay_out_narrowing("a − b", NARROWING[1:2], 0.2)
    assert (plot.marks, plot.middle) == ((), "")


def test_names_of_chatbots_are_escaped() -> None:
    svg = draw_narrowing("a<b> − c", NARROWING, 0.2)
    assert "a&lt;b&gt; − c" in svg
    assert "<b>" not in svg
