"""Markdown's tables."""

from __future__ import annotations

from collections.abc import Sequence

LARGEST_TABLE = 10_000_000
"""Cells of a table at most, empty ones included."""


def write_table(rows: Sequence[Sequence[str]]) -> str:
    """Return rows as a table, whose head is the first; empty rows and empty columns at the end are left out.

    >>> print(write_table([["Tool", "Fee"], ["", ""], ["Drill", "€4"], ["Saw"]]))
    | Tool | Fee |
    | --- | --- |
    | Drill | €4 |
    | Saw | |

    Raises:
        ValueError: it would have too many cells.
    """
    cells = [[" ".join(cell.split()).replace("|", r"\|") for cell in row] for row in rows]
    cells = [row for row in cells if any(row)]
    if not cells:
        return ""
    width = max(index for row in cells for index, cell in enumerate(row, start=1) if cell)
    if len(cells) * width > LARGEST_TABLE:
        raise ValueError(f"a table has more than {LARGEST_TABLE:,} cells, with the empty ones")
    head, *body = (_write_row([*row, *[""] * width][:width]) for row in cells)
    return "\n".join([head, _write_row(["---"] * width), *body])


def _write_row(cells: Sequence[str]) -> str:
    return "|" + "".join(f" {cell} |" if cell else " |" for cell in cells)
