from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from hallulab.simulator.metrics.hallucinations import Row
from hallulab.simulator.metrics.rows import build_row
from hallulab.simulator.report.charts.hpt import HallucinationChart
from hallulab.simulator.show.dots import LEFT, RIGHT, WIDTH, choose_axis_steps


def line(chatbot: str, value: float | None, ci95: tuple[float, float] | None = None) -> Row:
    reason = None if ci95 else "2 conversations; 6 needed for an interval"
    found = {"hpt_1": value, "hpt_1_ci95": ci95, "no_interval": reason}
    return build_row(chatbot, "d", []).model_copy(update=found)


def test_an_open_axis_starts_at_zero() -> None:
    assert choose_axis_steps([0.3, 0.92], None) == (0.0, 0.2, 0.4, 0.6, 0.8, 1.0)


def test_a_bounded_axis_ends_at_its_bound() -> None:
    assert choose_axis_steps([71.5, 97.0], 100) == (70.0, 80.0, 90.0, 100.0)
    assert choose_axis_steps([93.2, 97.0], 100) == (90.0, 92.0, 94.0, 96.0, 98.0, 100.0)
    assert choose_axis_steps([100.0], 100) == (90.0, 92.0, 94.0, 96.0, 98.0, 100.0)


def test_an_axis_of_nothing() -> None:
    assert choose_axis_steps([], None) == (0.0, 1.0)
    assert choose_axis_steps([0.0], None) == (0.0, 0.02, 0.04, 0.06, 0.08, 0.1)


def test_the_ends_of_the_axis_are_the_ends_of_the_plot() -> None:
    drawn = HallucinationChart.layout([line("a", 0.0), line("b", 1.0, (0.5, 1.0))])
    assert drawn.groups[0].dots[0].x == LEFT
    assert drawn.groups[1].dots[0].x == drawn.groups[1].dots[0].high == WIDTH - RIGHT


def test_a_number_that_is_undefined_is_not_drawn_as_zero() -> None:
    dot = HallucinationChart.layout([line("a", None)]).groups[0].dots[0]
    assert (dot.x, dot.low, dot.title) == (None, None, "a, d: not scored")


def test_a_number_without_an_interval_has_no_whisker_but_the_reason() -> None:
    dot = HallucinationChart.layout([line("a", 0.5)]).groups[0].dots[0]
    assert (dot.low, dot.high) == (None, None)
    assert dot.title == "a, d: 0.50 (2 conversations; 6 needed for an interval)"


def test_the_reason_of_another_number_is_not_said_of_one_with_an_interval() -> None:
    row = line("a", 0.5, (0.25, 0.75)).model_copy(update={"no_interval": "all have the same TokAcc-1"})
    dot = HallucinationChart.layout([row]).groups[0].dots[0]
    assert dot.title == "a, d: 0.50, 95% interval 0.25 to 0.75"


@given(st.lists(st.floats(0, 50), min_size=1, max_size=8))
def test_an_axis_holds_its_values_in_few_steps(values: list[float]) -> None:
    steps = choose_axis_steps(values, None)
    assert steps[0] <= min(values)
    assert steps[-1] >= max(values) - 1e-6
    assert 2 <= len(steps) <= 8
