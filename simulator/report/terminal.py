"""A report on the terminal: the headlines, the tables, and what limits their numbers."""

from __future__ import annotations

from rich.console import Console
from rich.text import Text

from hallulab.scenarios.text.wording import render_one_line
from hallulab.simulator.metrics.metric import LAST
from hallulab.simulator.metrics.run_report import RunReport
from hallulab.simulator.report.build import describe_models, describe_omissions, render_headlines
from hallulab.simulator.report.extensions import load_metrics
from hallulab.simulator.show.columns import NARROW

WIDTH = 112
"""Number of columns where standard output is no terminal."""


def build_console() -> Console:
    """Return a console on standard output, `WIDTH` columns wide where that is no terminal."""
    console = Console()
    return console if console.is_terminal else Console(width=WIDTH)


def print_report(report: RunReport, console: Console | None = None) -> None:
    """Print the findings, the tables, and their limits (failures, abstentions, flaws of the user)."""
    console = console or build_console()
    narrow = console.width < NARROW
    metrics = sorted(load_metrics(), key=lambda metric: metric.TERMINAL_ORDER)
    for sentence in render_headlines(report):
        console.print(Text(render_one_line(sentence)))
    console.print()
    for metric in (one for one in metrics if one.TERMINAL_ORDER < LAST):
        for table in metric.tables(report, narrow):
            console.print(table)
    beside = [line for metric in metrics for line in metric.lines(report)]
    for line in (*beside, *describe_omissions(report), *describe_models(report)):
        console.print(Text(render_one_line(line)))
    for metric in (one for one in metrics if one.TERMINAL_ORDER >= LAST):
        for table in metric.tables(report, narrow):
            console.print(table)
