"""Tables of a PDF out of the cells of their rows: heads, lines that go on with a row, names of values."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise
from statistics import median

from hallulab.scenarios.packs.kinds.pdf_lines import Phrase, Row, is_right_to_left, join_pieces, say


def is_head(band: list[Row], gutters: list[float], below: list[Row], gutters_below: list[float]) -> bool:
    """Return whether rows are the head of a table below that has more columns: its cells span several."""
    return (
        len(band) <= 2
        and len(band[0]) > 1
        and 0 < len(gutters) < len(gutters_below)
        and len(below) > 1
        and below[0][0].y - band[-1][0].y < 2 * band[-1][0].size
    )


def spread(heads: list[Row], gutters: list[float]) -> list[list[Row]]:
    """Return the rows of a head as one, in which a cell stands in each column that it spans."""
    edges = [float("-inf"), *gutters, float("inf")]
    columns = [
        [
            piece
            for row in heads
            for piece in row
            if min(piece.right, right) - max(piece.left, left) > piece.size / 3
        ]
        for left, right in pairwise(edges)
    ]
    return [columns] if heads else []


def join_heads(head: list[list[Row]], cells: list[list[Row]]) -> list[list[Row]]:
    """Return the rows of a table; those of its head are one, if the one below has no number either.

    The corner above the first column stands in one of them alone.
    """
    corner = head and not (head[0][0] and cells[0][0])
    if corner and not any(map(str.isdigit, "".join(say(cell) for cell in (*head[0], *cells[0])))):
        return [[[*one, *more] for one, more in zip(head[0], cells[0], strict=True)], *cells[1:]]
    return [*head, *cells]


def find_names(cells: list[list[Row]]) -> int:
    """Return the first column after others whose cells are names of values (`Date:`); 0: there is none."""
    for number, column in enumerate(list(zip(*cells, strict=True))[1:-1], start=1):
        said = [say(cell) for cell in column if cell]
        if len(said) > 1 and all(text.endswith(":") for text in said):
            return 0 if all(say(row[0]).endswith(":") for row in cells if row[0]) else number
    return 0


def write_table(cells: list[list[Row]]) -> tuple[str, list[Phrase]]:
    """Return a table as Markdown, and the rows under it that are no part of it."""
    heights = [next(piece.y for cell in row for piece in cell) for row in cells]
    steps = [after - before for before, after in pairwise(heights)]
    usual = median(steps)
    end = len(cells)
    while end > 2 and sum(map(bool, cells[end - 1])) == 1 and steps[end - 2] > 1.4 * usual:
        end -= 1
    rows: list[list[str]] = []
    close = min(steps) * 1.15 if max(steps) > 1.3 * min(steps) else 0.0
    right_to_left = is_right_to_left(" ".join(say(cell) for row in cells for cell in row))
    told = [[say(cell) for cell in (row[::-1] if right_to_left else row)] for row in cells[:end]]
    alone = _spread_first_cells(told, steps, close)
    centred = _find_centred(told, steps, close)
    for number, texts in enumerate(told):
        if number in alone:
            continue
        wrapped = (
            number
            and steps[number - 1] <= close
            and (
                not texts[0] or sum(map(bool, texts)) == 1 or all(text[0].islower() for text in texts if text)
            )
        )
        if wrapped or number in centred:
            rows[-1] = [f"{one} {more}".strip() for one, more in zip(rows[-1], texts, strict=True)]
        else:
            rows.append(texts)
    below = [join_pieces([piece for cell in row for piece in cell]) for row in cells[end:]]
    if all(row[0].endswith(":") for row in rows if sum(map(bool, row)) > 1):
        lines = "\n".join(" ".join(filter(None, row)) for row in rows)
    else:
        shown = ["| " + " | ".join(cell.replace("|", "\\|") for cell in row) + " |" for row in rows]
        lines = "\n".join([shown[0], "|" + " --- |" * len(rows[0]), *shown[1:]])
    return lines, below


def _spread_first_cells(rows: Sequence[list[str]], steps: Sequence[float], close: float) -> set[int]:
    """Write a first cell that stands in the middle of several rows into each; return its own lines."""
    alone = set[int]()
    for begin, end in _group_close(len(rows), steps, close):
        named = [number for number in range(begin, end) if rows[number][0]]
        others = [number for number in range(begin, end) if not rows[number][0]]
        if not begin or len(named) != 1 or len(others) < 2 or any(rows[named[0]][1:]):
            continue
        if all(sum(map(bool, rows[number])) > 1 for number in others):
            alone.add(named[0])
            for number in others:
                rows[number][0] = rows[named[0]][0]
    return alone


def _group_close(count: int, steps: Sequence[float], close: float) -> Iterator[tuple[int, int]]:
    """Yield begin and end of the lines that are as near as those of one row."""
    begin = 0
    for end in range(1, count + 1):
        if end == count or steps[end - 1] > close:
            yield begin, end
            begin = end


def _find_centred(rows: Sequence[Sequence[str]], steps: Sequence[float], close: float) -> set[int]:
    """Return the lines that go on with a row before its first cell: this stands in the middle, or below.

    Args:
        rows: the lines of a table, each with the texts of its cells.
        steps: the distances between them.
        close: lines of one row are as near as that, at most.
    """
    found = set[int]()
    for begin, end in _group_close(len(rows), steps, close):
        # The first lines may be a head, which has no first cell.
        if begin and not rows[begin][0] and sum(bool(row[0]) for row in rows[begin:end]) == 1:
            found |= set(range(begin + 1, end))
    return found
