"""Columns of tables, which give cells on the terminal, on a page and in CSV."""

from __future__ import annotations

import csv
import io
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from rich import box
from rich.table import Table
from rich.text import Text

from hallulab.scenarios.files.tables import is_formula
from hallulab.scenarios.text.wording import NOTHING, format_number, shorten_line

NARROW = 100
"""Terminals with fewer columns get tables without the `wide` ones."""

Format = Callable[[Any], str]


def build_decimal_format(digits: int, scale: float = 1) -> Format:
    """Return a format for numbers with so many decimals; None is a dash."""
    return lambda value: format_number(value, digits, scale)


def build_grouped_format(digits: int = 0) -> Format:
    """Return a format for large numbers: `12,345`."""
    return lambda value: NOTHING if value is None else f"{value:,.{digits}f}"


def is_lacking(share: float | None) -> bool:
    """Return whether something is not covered."""
    return share is None or share < 1


def format_p(p: float | None) -> str:
    """Format a p-value, with a star below 0.05."""
    return NOTHING if p is None else f"{p:.3g}{' *' if p < 0.05 else ''}"


def format_counts(value: Mapping[str, int]) -> str:
    """Format counts by name: `max turns 3, loop 1`."""
    return ", ".join(f"{name.replace('_', ' ')} {count}" for name, count in sorted(value.items()))


@dataclass(frozen=True)
class Column:
    """A column of a table; rows are values with fields."""

    label: str
    """Heading on a page; empty: the page lacks the column."""
    value: str
    """Field that it shows, and its heading in CSV; `a.b` is field b of field a."""
    hint: str = ""
    """Its meaning: the heading's tooltip, and a line of docs/metrics.md."""
    format: Format = str
    """Format of the value for people."""
    kind: Literal["number", "name", "text", "long"] = "number"
    """A number, the row's name, another word, or a text of several lines."""
    beside: str | None = None
    """Field shown beside the value: its interval, its standard deviation or a word."""
    short: str | None = None
    """Heading on the terminal; None: the terminal lacks the column."""
    brief: bool = False
    """Whether the terminal leaves out what `beside` shows."""
    wide: bool = False
    """Whether only terminals of at least `NARROW` columns show it."""
    warns: Callable[[Any], bool] = lambda value: False
    """Whether a value calls for attention."""

    def of(self, row: Any, field: str | None = None) -> Any:
        """Return the value in a row, or that of another field.

        Raises:
            AttributeError, KeyError: the row has no such field.
        """
        for name in (field or self.value).split("."):
            row = row[name] if isinstance(row, Mapping) else getattr(row, name)
        return row

    def text(self, row: Any) -> str:
        """Return the value as people read it."""
        return self.format(self.of(row))

    def aside(self, row: Any, bound: Format | None = None) -> str:
        """Return the text beside the value, such as `[0.30, 0.55]` or `± 0.02`; empty if there is none.

        Args:
            bound: format of an interval's bounds; None: that of the value.
        """
        found = None if self.beside is None else self.of(row, self.beside)
        if isinstance(found, tuple):
            return f"[{', '.join(map(bound or self.format, found))}]"
        if found is None or isinstance(found, str):
            return found or ""
        return f"± {self.format(found)}"

    def has_intervals(self, rows: Iterable[Any]) -> bool:
        """Return whether any row has an interval beside the value."""
        return self.beside is not None and any(isinstance(self.of(row, self.beside), tuple) for row in rows)


PERCENT = build_decimal_format(0, 100)
"""Format of shares."""
TWO_DECIMALS = build_decimal_format(2)
"""Format of hallucinations per turn."""
GROUPED = build_grouped_format()
"""Format of counts that may be large."""
CHATBOT = Column("Chatbot", "chatbot", "name of the chatbot", kind="name", short="Chatbot")
DETECTOR = Column("Detector", "detector", "name of the detector", kind="text", short="Detector", wide=True)


def group_rows(rows: Iterable[Any], field: str, names: Sequence[str]) -> list[list[Any]]:
    """Return the rows in groups by the name in a field, in the order of the names; empty groups, too."""
    held = list(rows)
    return [[row for row in held if getattr(row, field) == name] for name in names]


def build_grouped_table(
    columns: Sequence[Column], groups: Sequence[Sequence[Any]], field: str, narrow: bool
) -> Table:
    """Make a table of groups by a name; a narrow one has the name above each group, and intervals below.

    Args:
        field: the name's field.
        narrow: whether the terminal has fewer than `NARROW` columns.
    """
    by = "by " if field == "detector" else ""
    return build_terminal_table(
        columns,
        [group for group in groups if group],
        narrow=narrow,
        gap="\n" if narrow and by else " ",
        title=(lambda row: f"{by}{shorten_line(getattr(row, field))}") if narrow else None,
    )


def build_terminal_table(
    columns: Sequence[Column],
    groups: Sequence[Sequence[Any]],
    *,
    narrow: bool = False,
    bound: Format | None = None,
    gap: str = " ",
    title: Callable[[Any], str] | None = None,
) -> Table:
    """Make a table of the columns that have a short heading.

    Args:
        groups: rows, in separate groups.
        narrow: whether the terminal has fewer than `NARROW` columns.
        bound: format of intervals' bounds; None: that of the values.
        gap: text between a value and its interval.
        title: heading of a group, from its first row.
    """
    shown = [column for column in columns if column.short is not None and not (narrow and column.wide)]
    made = Table(box=box.SIMPLE_HEAD, padding=0, pad_edge=False, show_edge=False)
    for column in shown:
        rows = () if column.brief else (row for group in groups for row in group)
        heading = Text(f"{column.short}{f'{chr(10)}[95% CI]' if column.has_intervals(rows) else ''}")
        numbers = column.kind == "number"
        made.add_column(
            heading,
            justify="right" if numbers else "left",
            no_wrap=numbers,
            overflow="fold",
            max_width=26 if column.kind == "long" else None,
        )
    for group in groups:
        made.add_section()
        if title is not None:
            made.add_row(Text(title(group[0])))
        for row in group:
            made.add_row(*(Text(_format_cell(column, row, bound, gap)) for column in shown))
    return made


def _format_cell(column: Column, row: Any, bound: Format | None, gap: str) -> str:
    text = column.text(row) if column.kind == "number" else shorten_line(column.text(row))
    aside = "" if column.brief else column.aside(row, bound)
    return f"{text}{gap}{aside}" if aside else text


def format_csv(columns: Sequence[Column], rows: Iterable[Any]) -> str:
    """Write the rows as CSV, with the numbers of the JSON; an interval has two columns for its bounds.

    Fields that a row lacks are empty cells.
    """
    rows = list(rows)
    written = io.StringIO()
    lines = csv.writer(written, lineterminator="\n")
    lines.writerow([escape_formula(name) for column in columns for name in _list_csv_names(column)])
    for row in rows:
        lines.writerow([escape_formula(cell) for column in columns for cell in _list_csv_cells(column, row)])
    return written.getvalue()


def _list_csv_names(column: Column) -> list[str]:
    if column.beside is None:
        return [column.value]
    ends = ("_low", "_high") if column.beside.endswith("ci95") else ("",)
    return [column.value, *(f"{column.beside}{end}" for end in ends)]


def _list_csv_cells(column: Column, row: Any) -> list[Any]:
    value, beside = (_get_or_none(column, row, field) for field in (column.value, column.beside))
    if column.beside is None:
        return [value]
    return [value, *(beside or (None, None))] if column.beside.endswith("ci95") else [value, beside]


def _get_or_none(column: Column, row: Any, field: str | None) -> Any:
    try:
        return column.of(row, field)
    except AttributeError:
        return None


def escape_formula(cell: Any) -> Any:
    """Return the cell, with an apostrophe before a text that a spreadsheet would compute."""
    return f"'{cell}" if isinstance(cell, str) and is_formula(cell) else cell


def render_glossary(columns: Sequence[Column]) -> str:
    """Return a Markdown table with heading, field and meaning of each column."""
    lines = [
        f"| {column.label or column.short} | `{column.value}` | {column.hint} |".replace("\n", " ")
        for column in columns
    ]
    return "\n".join(("| column | field | meaning |", "|---|---|---|", *lines)) + "\n"
