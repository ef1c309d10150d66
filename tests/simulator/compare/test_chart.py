from __future__ import annotations

import pytest

from hallulab.simulator.compare.chart import choose_steps, draw_differences, lay_out_differences
from hallulab.simulator.compare.runs import compare_runs
from tests.simulator.compare.made import Found, found

SIX = [f"p{number}" for number in range(6)]


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
    assert choose_steps(values) == steps


def test_a_dot_stands_where_its_difference_is() -> None:
    before = found({"a": {(one, 0): [0] for one in SIX}, "b <i>": {("p0", 0): [0]}, "c": {("p0", 0): [None]}})
    twos: Found = {(one, 0): [number % 2 * 2] for number, one in enumerate(SIX)}
    after = found({"a": twos, "b <i>": {("p0", 0): [0]}, "c": {("p0", 0): [0]}})
    lines = [one for one in compare_runs([before, after]).runs[0].differences if one.metric == "hpt_1"]
    plot = lay_out_differences(lines)
    (one,), (other,), (unscored,) = (group.dots for group in plot.groups)
    ticks = {tick.label: tick.at for tick in plot.ticks}
    third = (ticks["+1"] - ticks["0"]) / 3
    assert one.x == ticks["+1"]
    assert (one.low, one.high) == pytest.approx((ticks["0"] + third, ticks["+2"] - third), abs=0.01)
    assert (other.x, other.low) == (ticks["0"], None)
    assert unscored.x is None
    assert one.title == "a, d: 0.00 → 1.00 a turn, +1.00 [+0.33, +1.67], p = 0.5"
    assert "<i>" not in draw_differences(lines)
