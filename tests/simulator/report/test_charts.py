from __future__ import annotations

import re

import pytest

from hallulab.simulator.metrics.hallucinations import Row
from hallulab.simulator.report.charts import (
    LEFT,
    RIGHT,
    TwoAxesPlot,
    choose_cost_measure,
    draw_accuracy,
    draw_answered,
    draw_charts,
    draw_costs,
    draw_coverage,
    draw_hallucinations,
    lay_out_two_axes,
)
from hallulab.simulator.show.charts import WIDTH
from tests.simulator.counted import empty_row


def scored(value: float | None, ci95: tuple[float, float] | None = None, why: str | None = None) -> Row:
    found = {"hpt_1": value, "hpt_1_ci95": ci95, "tokacc_1": value, "tokacc_1_ci95": ci95, "no_interval": why}
    return empty_row("a", "d").model_copy(update=found)


@pytest.mark.parametrize(
    ("row", "title"),
    [
        (scored(None), "a, d: not scored"),
        (scored(0.5, why="2 conversations; 6 needed"), "a, d: 0.50 (2 conversations; 6 needed)"),
        (scored(0.5, (0.25, 0.75), "all have the same TokAcc-1"), "a, d: 0.50, 95% interval 0.25 to 0.75"),
    ],
)
def test_a_dot_has_its_number_in_words_with_the_interval_or_why_there_is_none(row: Row, title: str) -> None:
    assert re.findall("<title>(.*)</title>", draw_hallucinations([row])[1]) == [title]


def test_token_accuracy_is_a_percentage() -> None:
    assert (
        "<title>a, d: 50.00%, 95% interval 25.00 to 75.00</title>"
        in draw_accuracy([scored(0.5, (0.25, 0.75))])[1]
    )


def test_a_chart_of_nothing_is_left_out() -> None:
    titles = [title for title, _ in draw_charts([line("a", 0.0, 0.5)], "dot").figures]
    assert [title.split(" (")[0] for title in titles] == ["Hallucinations per turn", "Token accuracy"]


def covered(chatbot: str, scored: int, turns: int) -> Row:
    found = {"coverage": scored / turns if turns else None, "scored_turns": scored, "turns": turns}
    return empty_row(chatbot, "d").model_copy(update=found)


def test_coverage_is_drawn_where_a_detector_left_a_turn_out() -> None:
    drawn = draw_coverage([covered("a", 4, 4), covered("b", 1, 4), covered("c", 0, 0)])
    assert drawn is not None
    assert re.findall("<title>(.*)</title>", drawn[1]) == [
        "a, d: 4 of 4 turns scored",
        "b, d: 1 of 4 turns scored",
        "c, d: 0 of 0 turns scored",
    ]
    assert re.findall('class="tick"[^>]*>(.*)</text>', drawn[1]) == ["20%", "40%", "60%", "80%", "100%"]


def test_full_coverage_has_no_chart() -> None:
    assert draw_coverage([covered("a", 4, 4), covered("b", 0, 0)]) is None


def line(
    chatbot: str,
    calls: float | None,
    hpt: float | None,
    ci95: tuple[float, float] | None = None,
    detector: str = "d",
    tokens: float | None = None,
) -> Row:
    found = {"calls_per_reply": calls, "tokens_per_reply": tokens, "hpt_1": hpt, "hpt_1_ci95": ci95}
    return empty_row(chatbot, detector).model_copy(update=found)


def lay_out_costs(rows: list[Row]) -> TwoAxesPlot | None:
    return lay_out_two_axes(rows, choose_cost_measure(rows))


def answering(chatbot: str, answered: float | None, hpt: float | None) -> Row:
    return empty_row(chatbot, "d").model_copy(update={"answered": answered, "hpt_1": hpt})


def test_the_first_chart_has_hallucinations_against_answered_replies() -> None:
    rows = [answering("idk", 0.0, 0.0), answering("half", 0.5, 0.5), answering("full", 1.0, 1.0)]
    title, svg = draw_charts(rows, "dot").figures[0]
    assert title == "Hallucinations (HPT-1) against answered replies; right and low is better"
    assert re.findall("<title>(.*)</title>", svg) == [
        "idk, d: 0.0 % of replies answered, 0.00",
        "half, d: 50.0 % of replies answered, 0.50",
        "full, d: 100.0 % of replies answered, 1.00",
    ]
    middle = round((LEFT + WIDTH - RIGHT) / 2, 2)
    assert re.findall('cx="([^"]*)"', svg) == [str(LEFT), str(middle), str(WIDTH - RIGHT)]


@pytest.mark.parametrize("shares", [(1.0, 1.0), (None, None), (0.5,)])
def test_where_all_answer_as_much_it_has_no_chart(shares: tuple[float | None, ...]) -> None:
    assert (
        draw_answered([answering(f"bot{number}", share, 0.5) for number, share in enumerate(shares)]) is None
    )


def title_of(rows: list[Row]) -> str:
    drawn = draw_costs(rows)
    assert drawn is not None
    return drawn[0]


def test_dots_stand_where_calls_and_hallucinations_are() -> None:
    plot = lay_out_costs([line("a", 0.0, 0.0), line("b", 4.0, 1.0, (0.5, 2.0))])
    assert plot is not None
    assert [(dot.x, dot.low, dot.title) for dot in plot.dots] == [
        (LEFT, None, "a, d: 0.00 model calls a reply, 0.00"),
        (
            WIDTH - RIGHT,
            (plot.top + 3 * plot.floor) / 4,
            "b, d: 4.00 model calls a reply, 1.00, 95% interval 0.50 to 2.00",
        ),
    ]
    assert (plot.dots[0].y, plot.dots[1].y, plot.dots[1].high) == (
        plot.floor,
        (plot.top + plot.floor) / 2,
        plot.top,
    )


def test_tokens_are_on_the_axis_where_the_server_told_them_of_every_chatbot() -> None:
    rows = [line("a", 9.0, 0.0, tokens=500.0), line("b", 2.0, 1.0, (0.5, 2.0), tokens=2000.0)]
    plot = lay_out_costs(rows)
    assert plot is not None
    assert (plot.across, [tick.label for tick in plot.x_ticks]) == (
        "tokens a reply",
        ["0", "500", "1,000", "1,500", "2,000"],
    )
    assert [(dot.x, dot.title) for dot in plot.dots] == [
        (LEFT + (WIDTH - LEFT - RIGHT) / 4, "a, d: 500 tokens a reply, 0.00"),
        (WIDTH - RIGHT, "b, d: 2,000 tokens a reply, 1.00, 95% interval 0.50 to 2.00"),
    ]
    assert title_of(rows) == ("Cost against quality: tokens a reply, and HPT-1; left and low is better")


def test_calls_are_on_the_axis_where_a_chatbots_tokens_are_not_known_and_the_caption_says_whose() -> None:
    rows = [line("a", 9.0, 0.5, tokens=500.0), line("b", 2.0, 1.0), line("b", 2.0, 1.0, detector="e")]
    plot = lay_out_costs(rows)
    assert plot is not None
    assert (plot.across, plot.dots[0].title) == (
        "model calls a reply",
        "a, d: 9.00 model calls a reply, 0.50",
    )
    assert title_of(rows) == (
        "Cost against quality: model calls a reply, and HPT-1; left and low is better. "
        "The server did not report all tokens of b."
    )


def test_a_chatbot_that_is_not_drawn_does_not_decide_what_is_on_the_axis() -> None:
    rows = [line("a", 2.0, 0.5, tokens=500.0), line("b", 1.0, None)]
    assert choose_cost_measure(rows).field == "tokens_per_reply"


def test_names_that_would_touch_stand_in_lines_above_each_other() -> None:
    plot = lay_out_costs([line("vanilla", 2.0, 0.1), line("editor", 2.1, 0.1), line("agent", 5.0, 0.1)])
    assert plot is not None
    assert [(name.text, name.y) for name in plot.names] == [("vanilla", 17), ("editor", 34), ("agent", 17)]
    assert plot.top == 42


def test_detectors_of_a_chatbot_stand_apart_under_one_name() -> None:
    plot = lay_out_costs([line("a", 2.0, 0.5), line("a", 2.0, 0.5, detector="e")])
    assert plot is not None
    assert len(plot.names) == 1
    assert plot.dots[1].x - plot.dots[0].x == 7


def test_what_is_not_known_is_left_out() -> None:
    plot = lay_out_costs([line("a", 2.0, None), line("b", None, 0.5), line("c", 1.0, 0.5)])
    assert plot is not None
    assert [name.text for name in plot.names] == ["c"]


def test_a_run_without_known_calls_has_no_chart() -> None:
    assert draw_costs([line("a", None, 0.5)]) is None
    assert draw_costs([line("a", 0.0, 0.5)]) is None
    assert draw_costs([]) is None


def test_names_are_escaped() -> None:
    drawn = draw_costs([line("a<b>", 1.0, 0.5)])
    assert drawn is not None
    svg = drawn[1]
    assert "a&lt;b&gt;, d" in svg
    assert "<b>" not in svg
