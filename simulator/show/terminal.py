"""Documents on the terminal: sentences, one a line, and tables that fit its width."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import takewhile
from typing import Any

from rich import box
from rich.cells import cell_len
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
                for table in build_tables(part, console):
                    console.print(table)
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


def build_tables(table: GroupedTable, console: Console) -> Iterator[Table]:
    """Make a table of the columns that have a short heading, or several that are no wider than the console.

    Each of several has some of the numbers, and begins with the columns that name its rows. On a narrow
    console they are without the wide columns. If the groups have a name, it stands above each, and intervals
    stand below their values, as there is no room beside them.
    """
    narrow = console.width < NARROW
    shown = [column for column in table.columns if column.short is not None and not (narrow and column.wide)]
    written = [_write_column(column, table, narrow, column is shown[0]) for column in shown]
    most = max(1, console.width // 2)
    names = list(takewhile(lambda one: one.column.kind != "number", written))
    columns = list(names)
    for one in written[len(names) :]:
        least = sum(other.measure(most) + 1 for other in [*columns, one]) - 1
        if least > console.width and len(columns) > len(names):
            yield _build_table(columns, most, console.width)
            columns = list(names)
        columns.append(one)
    yield _build_table(columns, most, console.width)


@dataclass(frozen=True)
class _WrittenColumn:
    column: Column
    heading: str
    groups: Sequence[Sequence[str]]
    """Its cells."""
    whole: bool
    """Its lines are not folded."""

    @property
    def texts(self) -> list[str]:
        return [self.heading, *(cell for group in self.groups for cell in group)]

    def measure(self, most: int) -> int:
        """Return the least width in which it can be read: of its lines, or of its words up to `most`."""
        if self.whole:
            return self.measure_lines()
        return min(most, max((cell_len(word) for text in self.texts for word in text.split()), default=0))

    def measure_lines(self) -> int:
        """Return the width of its longest line."""
        return max(cell_len(line) for text in self.texts for line in text.split("\n"))


def _write_column(column: Column, table: GroupedTable, narrow: bool, is_first: bool) -> _WrittenColumn:
    groups = [group for group in table.groups if group] if table.by else table.groups
    gap = "\n" if narrow and table.by == "detector" else " "
    rows = () if column.brief else (row for group in groups for row in group)
    heading = f"{column.short}{f'{chr(10)}[95% CI]' if column.has_intervals(rows) else ''}"
    cells = [[_format_cell(column, row, table, gap) for row in group] for group in groups]
    if table.by and narrow:
        by = "by " if table.by == "detector" else ""
        names = [f"{by}{shorten_line(Column('', table.by).of(group[0]))}" for group in groups]
        cells = [[name if is_first else "", *group] for name, group in zip(names, cells, strict=True)]
    whole = column.kind == "number" or (table.whole and column.kind == "name")
    return _WrittenColumn(column, heading, cells, whole)


def _build_table(columns: Sequence[_WrittenColumn], most: int, width: int) -> Table:
    made = Table(box=box.SIMPLE_HEAD, padding=0, pad_edge=False, show_edge=False)
    spare = max(0, width + 1 - sum(one.measure(most) + 1 for one in columns))
    has_numbers = any(one.column.kind == "number" for one in columns)
    for one in columns:
        least = one.measure(most)
        more = min(spare, one.measure_lines() - least)
        spare -= more
        made.add_column(
            Text(one.heading),
            justify="right" if one.column.kind == "number" else "left",
            no_wrap=one.whole,
            overflow="fold",
            width=least + more if has_numbers else None,
            max_width=26 if one.column.kind == "long" else None,
        )
    for group in zip(*(one.groups for one in columns), strict=True):
        made.add_section()
        for row in zip(*group, strict=True):
            made.add_row(*map(Text, row))
    return made


def _format_cell(column: Column, row: Any, table: GroupedTable, gap: str) -> str:
    text = column.text(row)
    if column.kind != "number":
        text = render_one_line(text) if table.whole else shorten_line(text)
    aside = "" if column.brief else column.aside(row, table.bound)
    marked = f"{text}{column.sign(row)[0]}"
    return f"{marked}{gap}{aside}" if aside else marked
