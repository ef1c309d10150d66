from __future__ import annotations

from hallulab.simulator.show.depth_lines import BOX, DepthPoint, draw_depths, lay_out_depths

POINTS = [
    DepthPoint("a", 0, "2", 0.5, None),
    DepthPoint("a", 0, "1", 1.0, (0.5, 2.0)),
    DepthPoint("a", 1, "1", None, None),
    DepthPoint("b", 1, "10 and later", 0.0, None),
]


def test_charts_have_one_scale_and_lines_in_the_order_of_turns() -> None:
    (first, one), (second, other) = lay_out_depths(POINTS, ["d", "e"])
    assert (first, second) == ("a", "b")
    assert one.y_ticks == other.y_ticks
    assert [tick.label for tick in one.x_ticks] == ["1", "2", "10 and later"]
    [line] = one.lines
    assert [dot.title for dot in line.dots] == [
        "a, turn 1, d: 1.00, 95% interval 0.50 to 2.00",
        "a, turn 2, d: 0.50",
    ]
    assert line.dots[0].x < line.dots[1].x
    assert (line.dots[0].high, line.dots[1].high) == (BOX.top, None)
    assert other.lines[0].dots[0].y == BOX.height - BOX.bottom


def test_dots_of_two_detectors_at_one_turn_stand_apart() -> None:
    [(_, plot)] = lay_out_depths(
        [DepthPoint("a", 0, "1", 0.5, None), DepthPoint("a", 1, "1", 0.5, None)], ["d", "e"]
    )
    assert plot.lines[1].dots[0].x - plot.lines[0].dots[0].x == 7


def test_names_of_detectors_are_escaped() -> None:
    [(_, svg)] = draw_depths([DepthPoint("a<b>", 0, "1", 0.5, None)], ["<i>"])
    assert "a&lt;b&gt;, turn 1, &lt;i&gt;: 0.50" in svg
    assert "<i>" not in svg
