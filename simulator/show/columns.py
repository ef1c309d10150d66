"""Columns of tables, which give cells on the terminal, on a page, in Markdown and in CSV."""

from __future__ import annotations

import csv
import io
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from hallulab.scenarios.files.tables import is_formula
from hallulab.scenarios.text.wording import NOTHING, format_number

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
    """Format counts by name: `loop: 1, max turns: 3`."""
    return ", ".join(f"{name.replace('_', ' ')}: {count}" for name, count in sorted(value.items()))


@dataclass(frozen=True)
class Column:
    """A column of a table; rows are values with fields."""

    label: str
    """Heading on a page; empty: no page has the column."""
    value: str
    """Field that it shows, and its heading in CSV; `a.b` is field b of field a, `a.0` the first item of a."""
    hint: str = ""
    """Its meaning: the heading's tooltip, and a line of docs/metrics.md."""
    format: Format = str
    kind: Literal["number", "name", "text", "long"] = "number"
    """A number, the row's name, another word, or a text of several lines."""
    beside: str | None = None
    """Field shown beside the value: its interval, its standard deviation or a word."""
    short: str | None = None
    """Heading on the terminal; None: the terminal does not have the column."""
    brief: bool = False
    """The terminal leaves out the text of `beside`."""
    wide: bool = False
    """Only wide terminals show it."""
    warns: Callable[[Any], bool] = lambda value: False
    """Says of a value whether it calls for attention."""
    address: str | None = None
    """Field with the address that a page links the value to; None: it is no link."""
    sign: Callable[[Any], tuple[str, str]] = lambda row: ("", "")
    """Sign behind the value of a row, and its explanation on a page."""

    def of(self, row: Any, field: str | None = None) -> Any:
        """Return the value in a row, or that of another field.

        Raises:
            AttributeError, IndexError, KeyError: the row has no such field.
        """
        for name in (field or self.value).split("."):
            if isinstance(row, Mapping):
                row = row[name]
            else:
                row = row[int(name)] if name.isdecimal() else getattr(row, name)
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
TWO_DECIMALS = build_decimal_format(2)
"""Format of hallucinations per turn."""
GROUPED = build_grouped_format()
"""Format of counts that may be large."""
CHATBOT = Column("Chatbot", "chatbot", "name of the chatbot", kind="name", short="Chatbot")
DETECTOR = Column("Detector", "detector", "name of the detector", kind="text", short="Detector", wide=True)


def group_rows(rows: Iterable[Any], field: str, names: Sequence[str] | None = None) -> list[list[Any]]:
    """Return the rows in groups by the name in a field.

    Args:
        rows: their order stays within each group.
        names: the order of the groups, of which some may be empty; None: that in which the rows have them.
    """
    listed = list(rows)
    ordered = dict.fromkeys(getattr(row, field) for row in listed) if names is None else names
    return [[row for row in listed if getattr(row, field) == name] for name in ordered]


def format_csv(columns: Sequence[Column], rows: Iterable[Any]) -> str:
    """Write the rows as CSV, with the numbers of the JSON; an interval has two columns for its bounds.

    Fields that a row does not have are empty cells.
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
