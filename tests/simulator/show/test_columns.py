"""Columns that are declared once: on the terminal, on the page and in CSV."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Sequence
from typing import NamedTuple

import pytest
from rich.console import Console

from hallulab.simulator.bench.tables import COSTS, LEVELS, ROWS, SPANS
from hallulab.simulator.bench.tables import TABLES as BENCH
from hallulab.simulator.metrics.results import COLUMNS as RESULTS
from hallulab.simulator.metrics.results import FIRST_COLUMNS
from hallulab.simulator.report.build import load_metrics
from hallulab.simulator.show.columns import (
    Column,
    build_decimal_format,
    build_grouped_format,
    format_counts,
    format_csv,
)
from hallulab.simulator.show.document import GroupedTable
from hallulab.simulator.show.terminal import build_tables
from tests.simulator.bench.test_document_page import page as bench_page
from tests.simulator.report.test_page import page as run_page
from tests.simulator.report.test_terminal import example_report

RUN = [columns for metric in load_metrics() for _, columns in metric.TABLES]


class Line(NamedTuple):
    """A row of a table."""

    name: str
    share: float | None
    share_ci95: tuple[float, float] | None = None
    word: str | None = None


NAME = Column("Name", "name", "what it is called", kind="name", short="Name")
SHARE = Column(
    "Share %", "share", "how much", build_decimal_format(1, 100), beside="share_ci95", short="Share\n%"
)
LINES = (Line("a", 0.25, (0.125, 0.5)), Line("b", None))


def headings(html: str, section: str) -> list[str]:
    """The headings of the first table behind a place of a page."""
    [head] = re.findall(r"<thead>.*?</thead>", html[html.index(section) :], re.DOTALL)[:1]
    plain = re.sub(r" <span.*?</span>", "", head).replace("‑", "-")
    return re.findall(r"<th [^>]*>(.*?)</th>", plain)


def on_terminal(columns: Sequence[Column]) -> list[str]:
    [table] = build_tables(GroupedTable(columns, [[]]), Console(width=200))
    return [str(column.header).split("\n[95%")[0] for column in table.columns]


@pytest.mark.parametrize("columns", [RESULTS, LEVELS, SPANS, COSTS])
def test_the_terminal_has_the_columns_of_the_page_in_the_same_order(columns: Sequence[Column]) -> None:
    shorts = [column.short for column in columns]
    assert on_terminal(columns) == [short for short in shorts if short is not None]


@pytest.mark.parametrize(
    ("columns", "section"), [(LEVELS, 'id="word"'), (SPANS, 'id="span"'), (COSTS, 'id="cost"')]
)
def test_the_page_of_a_benchmark_has_the_declared_columns(columns: Sequence[Column], section: str) -> None:
    assert headings(bench_page(), section) == [column.label for column in columns]


def test_the_page_of_a_run_has_the_declared_columns_with_their_hints() -> None:
    html = run_page(twins=2)
    assert headings(html, 'id="results"') == [column.label for column in FIRST_COLUMNS]
    assert headings(html, "<summary>All columns") == [column.label for column in RESULTS]
    assert len(FIRST_COLUMNS) == 5
    assert '<th scope="col" title="name of the chatbot">Chatbot</th>' in html


def test_csv_of_a_run_has_the_same_columns_with_the_bounds_of_intervals() -> None:
    read = list(csv.reader(io.StringIO(format_csv(RESULTS, example_report(twins=2).rows))))
    assert [name for name in read[0] if not name.endswith(("_low", "_high"))] == [
        column.value for column in RESULTS
    ]
    assert len(read) == 11
    first = dict(zip(*read[:2], strict=True))
    row = example_report(twins=2).rows[0]
    assert (first["chatbot"], first["hpt_1"]) == (row.chatbot, str(row.hpt_1))
    assert row.hpt_1_ci95 == (float(first["hpt_1_ci95_low"]), float(first["hpt_1_ci95_high"]))


def test_csv_of_a_benchmark_has_each_column_once() -> None:
    values = [column.value for column in (*LEVELS[1:], *SPANS[1:], *COSTS[1:])]
    assert [column.value for column in ROWS] == ["detector", "level", *dict.fromkeys(values)]


def test_a_number_has_its_interval_beside_it_and_its_bounds_in_csv() -> None:
    assert [f"{SHARE.text(line)} {SHARE.aside(line)}".strip() for line in LINES] == ["25.0 [12.5, 50.0]", "–"]
    assert format_csv((NAME, SHARE), LINES) == (
        "name,share,share_ci95_low,share_ci95_high\na,0.25,0.125,0.5\nb,,,\n"
    )


def test_the_terminal_speaks_of_intervals_where_there_is_one() -> None:
    console = Console(width=80, no_color=True)
    with console.capture() as capture:
        for lines, bound in ((LINES, build_decimal_format(1)), (LINES[1:], None)):
            console.print(*build_tables(GroupedTable((NAME, SHARE), [lines], bound=bound), console))
    lines = [" ".join(line.split()) for line in capture.get().splitlines() if "─" not in line]
    assert lines == ["Share", "%", "Name [95% CI]", "a 25.0 [0.1, 0.5]", "b –", "Share", "Name %", "b –"]


def test_a_word_or_a_deviation_may_stand_beside_a_number() -> None:
    line = Line("a", 0.5, word="tuned")
    assert Column("", "share", beside="word").aside(line) == "tuned"
    assert Column("", "share", format=build_decimal_format(2), beside="share").aside(line) == "± 0.50"


def test_a_text_that_a_spreadsheet_would_compute_is_none_in_csv() -> None:
    text = format_csv((NAME, SHARE), [Line("=1+1", -0.5), Line("+a", None), Line("a,b", None)])
    assert text.splitlines()[1:] == ["'=1+1,-0.5,,", "'+a,,,", '"a,b",,,']


def test_a_field_that_no_row_has_is_no_dash_but_an_error() -> None:
    with pytest.raises(AttributeError, match="shre"):
        Column("Share", "shre", "how much").text(LINES[0])
    assert format_csv((NAME, Column("Word", "other", "another row's")), LINES[:1]) == "name,other\na,\n"


def test_formats() -> None:
    assert (
        build_grouped_format()(1234567),
        build_grouped_format(1)(1234.56),
        build_grouped_format()(None),
    ) == ("1,234,567", "1,234.6", "–")
    assert format_counts({"max_turns": 3, "loop": 1}) == "loop: 1, max turns: 3"


@pytest.mark.parametrize("column", [one for columns in (*RUN, *BENCH.values()) for one in columns])
def test_every_column_says_what_it_means(column: Column) -> None:
    assert column.hint != ""
    assert "|" not in column.hint
