"""Tables: read as text with columns parted by commas, semicolons, tabs or bars, and written as Markdown."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Sequence
from itertools import islice, pairwise, zip_longest

from hallulab.scenarios.packs.kinds import Extracted
from hallulab.scenarios.packs.kinds.cell_lines import spread_lines
from hallulab.scenarios.packs.kinds.text import decode

_SEPARATORS = ",;\t|"
_ROWS_TRIED = 100
_DIGIT = re.compile(r"\d")


def read(content: bytes) -> Extracted:
    """Return the rows as a Markdown table; its head is the first row."""
    text, encoding = decode(content)
    notes = () if encoding == "utf-8" else (f"is not UTF-8, and was read as {encoding}",)
    first, _, rest = text.partition("\n")
    if first.lower().startswith("sep=") and len(first.rstrip("\r")) == 5:  # Excel's own mark
        separator, text = first[4], rest
    else:
        separator = _find_separator(text)
    rows = list(csv.reader(io.StringIO(text, newline=""), delimiter=separator))
    return Extracted(write_sheet(rows), notes=notes)


def _find_separator(text: str) -> str:
    """Return what parts most of the first rows into as many columns as the head has; of several, the most.

    The head is the first row of several columns: a title may stand above it.
    """

    def score(separator: str) -> tuple[float, int]:
        rows = csv.reader(io.StringIO(text, newline=""), delimiter=separator)
        widths = [len(row) for row in islice(rows, _ROWS_TRIED) if row]
        head = next((width for width in widths if width > 1), 0)
        return (widths.count(head) / len(widths), head) if head else (0.0, 0)

    return max(_SEPARATORS, key=score)


LARGEST_TABLE = 10_000_000
"""Cells of a table at most, empty ones included."""


def write_sheet(rows: Sequence[Sequence[str]]) -> str:
    """Return rows as tables, each under the lines that stand alone above its head.

    An empty row ends a table if a head follows it: a row of words over one with a number.

    Raises:
        ValueError: a table would have too many cells.
    """
    texts: list[str] = []
    begin = 0
    for place in range(1, len(rows) + 1):
        head, below = ("".join(row) for row in (*rows[place : place + 2], "", "")[:2])
        is_head = (
            below and sum(map(bool, rows[place])) > 1 and not _DIGIT.search(head) and _DIGIT.search(below)
        )
        if place == len(rows) or (is_head and not any(rows[place - 1])):
            texts += _write_titled(rows[begin:place])
            begin = place
    return "\n\n".join(texts)


def _write_titled(rows: Sequence[Sequence[str]]) -> list[str]:
    """Return the lines that stand alone above a table, and the table."""
    filled = [row for row in rows if any(row)]
    alone = len(filled) if len(filled) == 1 else 0  # a column of more is a table
    wide = next((place for place, row in enumerate(filled) if not _is_alone(row)), alone)
    titles = [" ".join(next(filter(None, row)).split()) for row in filled[:wide]]
    return [*titles, table] if (table := write_table(filled[wide:])) else titles


def _is_alone(row: Sequence[str]) -> bool:
    """Return whether a row is one cell, which may be merged and then stands in all places."""
    said = list(filter(None, row))
    return len(said) == 1 or (len(said) == len(row) and len(set(said)) == 1 and not said[0].isdigit())


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
    first = next((place for place, row in enumerate(rows) if any(row)), 0)
    lines = (line for row in rows[first + 1 :] for line in spread_lines(row))
    cells = [
        [" ".join(cell.split()).replace("|", r"\|") for cell in row]
        for row in (*rows[first : first + 1], *lines)
    ]
    cells = [row for row in cells if any(row)]
    if not cells:
        return ""
    width = max(index for row in cells for index, cell in enumerate(row, start=1) if cell)
    if len(cells) * width > LARGEST_TABLE:
        raise ValueError(f"a table has more than {LARGEST_TABLE:,} cells, with the empty ones")
    # The second row goes on with a head that has merged cells, if it has no number either.
    if (
        len(cells) > 2
        and any(one and one == other for one, other in pairwise(cells[0]))
        and cells[1][:1] in ([""], cells[0][:1])
        and not _DIGIT.search("".join((*cells[0], *cells[1])))
    ):
        cells[:2] = [
            [" ".join(dict.fromkeys(filter(None, both))) for both in zip_longest(*cells[:2], fillvalue="")]
        ]
    head, *body = (_write_row([*row, *[""] * width][:width]) for row in cells)
    return "\n".join([head, _write_row(["---"] * width), *body])


def _write_row(cells: Sequence[str]) -> str:
    return "|" + "".join(f" {cell} |" if cell else " |" for cell in cells)
