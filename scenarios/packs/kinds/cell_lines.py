"""Rows of tables that are written as lines of one row's cells: `Mon<br>Tue` beside `9–12<br>closed`."""

from __future__ import annotations

import re
from collections.abc import Sequence

_DIGIT = re.compile(r"\d")


def spread_lines(row: Sequence[str]) -> list[list[str]]:
    """Return the rows that the lines of a row's cells are, or the row itself; no cell has lines any more.

    They are rows if two cells have as many lines and the others one, each line of the first begins anew, and
    half of those of one have a number. A cell of one line belongs to each.

    >>> spread_lines(["Mon\\nTue", "9-12\\nclosed"]), spread_lines(["Cordless\\ndrill", "4 euros\\na day"])
    ([['Mon', '9-12'], ['Tue', 'closed']], [['Cordless drill', '4 euros a day']])
    """
    cells = [[" ".join(line.split()) for line in cell.split("\n") if line.strip()] for cell in row]
    several = [lines for lines in cells if len(lines) > 1]
    if (
        len(several) > 1
        and len({len(lines) for lines in several}) == 1
        and not any(line[0].islower() for line in several[0])
        and any(2 * sum(map(bool, map(_DIGIT.search, lines))) >= len(lines) for lines in several)
    ):
        return [
            [lines[at] if len(lines) > 1 else "".join(lines) for lines in cells]
            for at in range(len(several[0]))
        ]
    return [[" ".join(lines) for lines in cells]]
