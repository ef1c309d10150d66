"""The three tables of a stress test on the terminal."""

from __future__ import annotations

from rich.console import Console
from rich.text import Text

from hallulab.scenarios.text.wording import render_one_line
from hallulab.simulator.report.columns import NARROW, build_terminal_table
from hallulab.simulator.report.terminal import build_console
from hallulab.simulator.stress.rag_trust.config import DIMENSIONS
from hallulab.simulator.stress.rag_trust.report import StressReport
from hallulab.simulator.stress.rag_trust.tables import HEADINGS, choose_columns


def print_stress(report: StressReport, console: Console | None = None) -> None:
    """Print the tables, a section for each attack, and the notes."""
    console = console or build_console()
    for dimension in DIMENSIONS:
        columns = choose_columns(dimension, report.config.answering)
        table = build_terminal_table(columns, report.groups(dimension), narrow=console.width < NARROW)
        console.print(Text(HEADINGS[dimension]))
        console.print(table)
        console.print()
    for note in report.notes:
        console.print(Text(render_one_line(note)))
