from __future__ import annotations

from hallulab.simulator.decide.decision import Decider
from hallulab.simulator.show.narrowing import BOX, draw_narrowing, lay_out_narrowing


def decide(batches: int, rates: dict[str, float | None]) -> Decider:
    """Take batches of four persons."""
    decider = Decider([*rates])
    for number in range(4 * batches):
        decider.add(str(number), rates)
        if number % 4 == 3:
            decider.end_batch()
    return decider


def test_a_band_narrows_around_the_difference_and_is_cut_at_the_edges() -> None:
    steps = decide(5, {"a": 0.5, "b": 1.0}).state().steps
    plot = lay_out_narrowing("a", "b", steps, 0.2)
    points = [tuple(map(float, point.split(","))) for point in plot.band.split()]
    heights = [low - high for (_, high), (_, low) in zip(points[:5], points[:4:-1], strict=True)]
    assert heights == sorted(heights, reverse=True)
    assert heights[0] == BOX.height - BOX.top - BOX.bottom > heights[-1]
    assert len(plot.marks) == 5
    assert plot.margins[0] < plot.zero < plot.margins[1] < plot.marks[-1].y
    assert plot.marks[-1].title.startswith("20 personas: -0.50 a turn, between ")


def test_a_pair_of_which_nothing_was_scored_is_drawn_without_a_line() -> None:
    plot = lay_out_narrowing("a", "b", decide(1, {"a": 0.5, "b": None}).state().steps, 0.2)
    assert (plot.marks, plot.middle) == ((), "")
    assert plot.label.endswith("0 personas, nothing is known")


def test_names_are_escaped() -> None:
    steps = decide(1, {"a<b>": 0.5, "c": 1.0}).state().steps
    svg = draw_narrowing("a<b>", "c", steps, 0.2)
    assert "a&lt;b&gt; − c" in svg
    assert "<b>" not in svg
