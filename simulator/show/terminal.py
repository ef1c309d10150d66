"""Documents on the terminal: sentences, one a line, and tables that fit its width."""

from __future__ import annotations

from typing import Any

from rich import box
from rich.console import Console
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from hallulab.scenarios.text.wording import render_one_line, shorten_line
from hallulab.simulator.show.columns import Column
from hallulab.simulator.show.document import (
    Bullets,
    GroupedTable,
    Heading,
    NotableReplies,
    Paragraph,
    ShownDocument,
)

WIDTH = 112
"""Number of columns where standard output is no terminal."""
NARROW = 100
"""Terminals with fewer columns get tables without the `wide` ones."""
MOST_CASES = 5
"""Replies of a kind that are listed."""


def build_console() -> Console:
    """Return a console on standard output, `WIDTH` columns wide where that is no terminal."""
    console = Console()
    return console if console.is_terminal else Console(width=WIDTH)


def print_document(document: ShownDocument, console: Console | None = None) -> None:
    """Print the lead and the parts of every section, in their order."""
    console = console or build_console()
    shown = document.of("terminal")
    for part in (*shown.lead, *(part for section in shown.sections for part in section.parts)):
        match part:
            case Paragraph():
                print_line(console, part.text)
            case Heading():
                console.print()
                print_line(console, part.text)
            case Bullets():
                for line in part.lines:
                    print_line(console, f"- {line}")
            case GroupedTable():
                if part.heading:
                    print_line(console, part.heading)
                console.print(build_table(part, narrow=console.width < NARROW))
            case NotableReplies():
                _print_cases(part, console)
            case _:  # charts, details and markup are for pages
                pass


def print_line(console: Console, text: str) -> None:
    """Print a text as one line, without what a terminal would obey."""
    console.print(Text(render_one_line(text)))


def _print_cases(part: NotableReplies, console: Console) -> None:
    console.print()
    print_line(console, f"{part.title} ({part.number}):")
    for case in part.cases[:MOST_CASES]:
        note = f"; {case.note}" if case.note else ""
        print_line(console, f"- {case.where}: {case.text}{note}")
        for quotation in case.quotations:
            line = Text(render_one_line(f"{quotation.label}: {quotation.text}"))
            console.print(Padding(line, (0, 0, 0, 4)))
    if part.number > MOST_CASES:
        print_line(console, f"… and {part.number - MOST_CASES} more; --json and --html have them.")


def build_table(table: GroupedTable, *, narrow: bool) -> Table:
    """Make a table of the columns that have a short heading.

    A narrow one is without the wide columns. If its groups have a name, it stands above each, and intervals
    stand below their values, as there is no room beside them.
    """
    groups = [group for group in table.groups if group] if table.by else table.groups
    shown = [column for column in table.columns if column.short is not None and not (narrow and column.wide)]
    gap = "\n" if narrow and table.by == "detector" else " "
    made = Table(box=box.SIMPLE_HEAD, padding=0, pad_edge=False, show_edge=False)
    for column in shown:
        rows = () if column.brief else (row for group in groups for row in group)
        heading = Text(f"{column.short}{f'{chr(10)}[95% CI]' if column.has_intervals(rows) else ''}")
        numbers = column.kind == "number"
        made.add_column(
            heading,
            justify="right" if numbers else "left",
            no_wrap=numbers or (table.whole and column.kind == "name"),
            overflow="fold",
            max_width=26 if column.kind == "long" else None,
        )
    for group in groups:
        made.add_section()
        if table.by and narrow:
            by = "by " if table.by == "detector" else ""
            name = Column("", table.by).of(group[0])
            made.add_row(Text(f"{by}{shorten_line(name)}"))
        for row in group:
            made.add_row(*(Text(_format_cell(column, row, table, gap)) for column in shown))
    return made


def _format_cell(column: Column, row: Any, table: GroupedTable, gap: str) -> str:
    text = column.text(row)
    if column.kind != "number":
        text = render_one_line(text) if table.whole else shorten_line(text)
    aside = "" if column.brief else column.aside(row, table.bound)
    marked = f"{text}{column.sign(row)[0]}"
    return f"{marked}{gap}{aside}" if aside else marked
