from __future__ import annotations

from hallulab.simulator.compare.chart import draw_differences
from hallulab.simulator.compare.runs import compare_runs
from tests.simulator.compare.made import Found, found

SIX = [f"p{number}" for number in range(6)]


def test_a_dot_has_the_numbers_of_its_line_and_names_are_escaped() -> None:
    before = found({"a": {(one, 0): [0] for one in SIX}, "b <i>": {("p0", 0): [0]}, "c": {("p0", 0): [None]}})
    twos: Found = {(one, 0): [number % 2 * 2] for number, one in enumerate(SIX)}
    after = found({"a": twos, "b <i>": {("p0", 0): [0]}, "c": {("p0", 0): [0]}})
    svg = draw_differences(compare_runs([before, after]).runs[0].differences)
    assert "<title>a, d: 0.00 → 1.00 a turn, +1.00 [+0.33, +1.67], p = 0.5</title>" in svg
    assert svg.count("<circle") == 2
    assert "<i>" not in svg
