"""Rows of numbers as a table on the terminal."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from rich import box
from rich.table import Table

from simulator.report.terminal import standard_output

_COLUMNS = {
    "detector": "detector",
    "n": "n",
    "coverage": "coverage",
    "auroc": "AUROC",
    "precision": "P",
    "recall": "R",
    "f1": "F1",
    "threshold": "threshold",
    "threshold_protocol": "",
    "calls": "calls",
    "tokens": "tokens",
    "seconds": "s",
}


def print_rows(rows: Sequence[Mapping[str, Any]]) -> None:
    """One line a detector; what is not defined is shown as a dash."""
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    for field, heading in _COLUMNS.items():
        table.add_column(heading, justify="left" if field == "detector" else "right", no_wrap=True)
    for row in rows:
        table.add_row(*(_cell(row[field]) for field in _COLUMNS))
    standard_output().print(table)


def _cell(value: Any) -> str:
    if value is None:
        return "–"
    return f"{value:.3f}" if isinstance(value, float) else str(value)
