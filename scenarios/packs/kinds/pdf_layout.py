"""Order of reading of a PDF: running headers, columns, tables and paragraphs, out of its rows."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from itertools import pairwise, zip_longest
from statistics import median
from typing import NamedTuple

from hallulab.scenarios.packs.kinds.pdf_lines import Phrase, Row, is_right_to_left, join_pieces, say
from hallulab.scenarios.packs.kinds.pdf_tables import find_names, is_head, join_heads, spread, write_table
from hallulab.scenarios.text.one_form import CONJUNCTIONS, HYPHENATED_HALVES

_MARGIN = 0.12
"""Running headers and footers stand in so much of a page's height, above and below."""
_PROSE_WORDS = 3.0
"""Words in a line of a column of prose at least, on average; cells of a table have fewer in some column."""
_PROSE_ROWS = 3
_ITEM = re.compile(r"[•▪◦●○■□‣·☒☐✓*–—-]|\(?(?:\d{1,3}|[a-zA-Z]|[ivxlIVXL]{1,5})[.)]")
_DOTS = re.compile(r"[.·…_](?: ?[.·…_]){4,}")
_NO_SPACES = re.compile(r"[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3000-\u30ff\u3400-\u9fff\uff00-\uffef]")
"""Letters of scripts that write no spaces between words."""
_HYPHENATED = re.compile(r"(?P<first>[^\W\d_][\w'’-]*)[-‐]$")

_RANGE = re.compile(r"\d[-–]$")


class _PdfBlock(NamedTuple):
    lines: tuple[str, ...]
    flows: bool
    """It may go on in the next column or on the next page: prose."""


class PageRows(NamedTuple):
    """Rows of a page that are written in one direction, and the height of the page in it."""

    rows: list[Row]
    height: float


def lay_out(sheets: Sequence[PageRows]) -> tuple[str, list[str]]:
    """Return the text of a document, and the lines that were left out since they stand on several pages."""
    left_out = _remove_running(sheets)
    paragraphs: list[_PdfBlock] = []
    footnotes: list[_PdfBlock] = []
    for sheet in sheets:
        body, notes = _part_footnotes(sheet.rows)
        before = len(paragraphs)
        _append(paragraphs, _read_block(body))
        paragraphs[before:before] = footnotes  # after the sentence that goes on here
        footnotes = _read_block(notes)
    paragraphs += footnotes
    words = Counter(
        word.lower()
        for paragraph in paragraphs
        for line in paragraph.lines
        for word in re.findall(r"[^\W\d_]+(?:-[^\W\d_]+)*", line)
    )
    texts = (
        _join(paragraph.lines, words) if paragraph.flows else paragraph.lines[0] for paragraph in paragraphs
    )
    return "\n\n".join(_DOTS.sub("…", text) for text in texts), left_out


def _remove_running(sheets: Sequence[PageRows]) -> list[str]:
    """Take the headers and footers out of the rows; return the first of each."""
    places: dict[tuple[str, int], list[tuple[int, Row]]] = {}
    for number, sheet in enumerate(sheets):
        for row in sheet.rows[:3] + sheet.rows[3:][-3:]:
            y = row[0].y
            if min(y, sheet.height - y) < _MARGIN * sheet.height:
                text = re.sub(r"\d+|\b[ivxl]+\b", "#", say(row))
                places.setdefault((text, round(y / 8)), []).append((number, row))
    left_out = []
    for found in places.values():
        apart = any(_is_apart(row, sheets[number]) for number, row in found)
        if len({number for number, _ in found}) > 1 and apart and _counts_pages(found):
            left_out.append(say(found[0][1]))
            for number, row in found:
                sheets[number].rows[:] = [other for other in sheets[number].rows if other is not row]
    return left_out


def _is_apart(row: Row, sheet: PageRows) -> bool:
    """Return whether a row is no line of the paragraph or cell that stands next to it, towards the middle."""
    inner = [
        other[0].y for other in sheet.rows if (other[0].y - row[0].y) * (sheet.height / 2 - row[0].y) > 0
    ]
    return all(abs(y - row[0].y) > 1.5 * max(piece.size for piece in row) for y in inner)


def _counts_pages(found: Sequence[tuple[int, Row]]) -> bool:
    """Return whether the numbers of lines on several pages are equal, or those of the pages."""
    told = [(number, re.findall(r"\d+", say(row))) for number, row in found]
    for (one, before), (other, after) in pairwise(told):
        for first, second in zip(before, after, strict=False):
            if first != second and int(second[:9]) - int(first[:9]) not in (1, other - one):
                return False
    return True


def _part_footnotes(rows: list[Row]) -> tuple[list[Row], list[Row]]:
    """Return the rows of a page, and the footnotes at its end."""
    for number, row in enumerate(rows):
        if row[0].text.startswith("[") and re.match(r"\[[\w*†‡]{1,3}\]", row[0].text):
            usual = median(piece.size for above in rows[:number] for piece in above) if number else 0
            if all(piece.size < usual for below in rows[number:] for piece in below):
                return rows[:number], rows[number:]
    return rows, []


def _append(paragraphs: list[_PdfBlock], found: list[_PdfBlock]) -> None:
    """Add paragraphs; the first may go on with the last that was prose: a column or page parted them."""
    if paragraphs and found and paragraphs[-1].flows and found[0].flows:
        before, after = paragraphs[-1].lines[-1], found[0].lines[0]
        if after[:1].islower() and not before.endswith((".", ":", "!", "?", ";")):
            paragraphs[-1] = _PdfBlock(paragraphs[-1].lines + found[0].lines, True)
            found = found[1:]
    paragraphs += found


def _read_block(rows: Sequence[Row], depth: int = 0) -> list[_PdfBlock]:
    """Return the paragraphs of rows that may hold columns and tables."""
    paragraphs: list[_PdfBlock] = []
    heads: list[Row] = []
    # The mark of a list belongs to its item.
    bands = _find_bands(
        [
            [join_pieces(row)._replace(size=row[1].size)]
            if len(row) == 2 and _ITEM.fullmatch(row[0].text) and row[1].left - row[0].right < 4 * row[0].size
            else row
            for row in rows
        ]
    )
    for (band, gutters), below in zip_longest(bands, bands[1:]):
        if below and is_head(band, gutters, *below):
            heads = [*heads, *band]
            continue
        cells = [_sort_in(row, gutters) for row in band]
        if not gutters or sum(sum(map(bool, row)) > 1 for row in cells) < 2:
            paragraphs += _read_prose([join_pieces(row) for row in [*heads, *band]])
        elif depth < 3 and _is_prose(cells):
            paragraphs += _read_prose([join_pieces(row) for row in heads])
            columns = list(zip(*cells, strict=True))
            if is_right_to_left(" ".join(say(row) for row in band)):
                columns.reverse()
            for column in columns:
                _append(paragraphs, _read_block([list(cell) for cell in column if cell], depth + 1))
        elif depth < 3 and not heads and (side := find_names(cells)):
            for part in ([row[:side] for row in cells], [row[side:] for row in cells]):
                lines = [[piece for cell in row for piece in cell] for row in part]
                paragraphs += _read_block([line for line in lines if line], depth + 1)
        else:
            table, under = write_table(join_heads(spread(heads, gutters), cells))
            paragraphs += [_PdfBlock((table,), False), *_read_prose(under)]
        heads = []
    return paragraphs


def _find_bands(rows: list[Row]) -> list[tuple[list[Row], list[float]]]:
    """Part rows where their gaps change: rows in one band have the same gaps from above to below.

    Returns:
        each band with the middles of its gaps; none: it is prose over the whole width.
    """
    bands: list[tuple[list[Row], list[tuple[float, float]]]] = []
    for row in rows:
        gaps = [(one.right, other.left) for one, other in pairwise(row)]
        if bands and not gaps and not bands[-1][1]:
            bands[-1][0].append(row)
            continue
        band, known = bands[-1] if bands else ([], [])
        shared = [part for gap in known for part in _cut(gap, row)]
        alone = len(band) <= 2 and len(gaps) > len(known)
        changed = len(row) == 1 or len(gaps) != len(known)
        far = bool(band) and changed and row[0].y - band[-1][0].y > 3 * row[0].size
        lost = len(shared) < len(known) and (not shared or len(band) > 2)
        if known and not alone and not far and not lost and shared:
            band.append(row)
            known[:] = shared
        else:
            higher: list[Row] = []  # the first lines of a column that begins above the one to its left
            while not known and band and gaps and _begins_column(band[-1], [*higher, row][0], gaps):
                higher.insert(0, band.pop())
            bands = [one for one in bands if one[0]]
            bands.append(([*higher, row], gaps))
    return [(band, [(left + right) / 2 for left, right in gaps]) for band, gaps in bands]


def _begins_column(above: Row, row: Row, gaps: Sequence[tuple[float, float]]) -> bool:
    """Return whether a row that stands alone is a line of one of the right columns of the row below it."""
    piece = above[0]
    near = row[0].y - piece.y < 1.3 * piece.size
    return len(above) == 1 and near and any(abs(piece.left - right) < 0.5 * piece.size for _, right in gaps)


def _cut(gap: tuple[float, float], row: Row) -> list[tuple[float, float]]:
    """Return what a row leaves of a gap: nothing, or the widest part that stays free."""
    left, right = gap
    for piece in row:
        if piece.left < right and piece.right > left:
            if piece.left <= left and piece.right >= right:
                return []
            if piece.left - left > right - piece.right:
                right = piece.left
            else:
                left = piece.right
    return [(left, right)] if right - left > 0.4 * row[0].size else []


def _sort_in(row: Row, gutters: Sequence[float]) -> list[Row]:
    cells: list[Row] = [[] for _ in range(len(gutters) + 1)]
    for piece in row:
        cells[sum(gutter < (piece.left + piece.right) / 2 for gutter in gutters)].append(piece)
    return cells


def _is_prose(cells: list[list[Row]]) -> bool:
    """Return whether columns hold lines of prose, no cells of a table."""
    for column in zip(*cells, strict=True):
        lines = [join_pieces(cell) for cell in column if cell]
        if len(lines) < _PROSE_ROWS:
            return False
        width = max(line.right for line in lines) - min(line.left for line in lines)
        if sum(len(line.text.split()) for line in lines) < _PROSE_WORDS * len(lines) and not (
            _NO_SPACES.search(lines[0].text) and len(lines[0].text) > 8
        ):
            return False
        if sum(line.right - line.left for line in lines) < 0.55 * width * len(lines):
            return False
    return True


def _read_prose(lines: Sequence[Phrase]) -> list[_PdfBlock]:
    """Return the paragraphs of lines that stand one under the other; deliberate breaks of a line stay."""
    if not lines:
        return []
    left, right = min(line.left for line in lines), max(line.right for line in lines)
    steps = sorted(below.y - above.y for above, below in pairwise(lines))
    usual = steps[len(steps) // 4] if steps else 0.0
    paragraphs = [[lines[0].text]]
    for above, line in pairwise(lines):
        step, size = line.y - above.y, max(line.size, above.size)
        indented = line.left - left > 0.8 * size and above.left - left < 0.3 * size
        if (
            step > max(1.3 * min(usual, 1.5 * size), 1.05 * size)
            or min(line.size, above.size) < 0.87 * size
            or _begins_item(line)
            or (indented and not _begins_item(above) and not is_right_to_left(line.text))
        ):
            paragraphs.append([line.text])
            continue
        first = line.text.split(" ")[0]
        wide = (line.right - line.left) * (len(first) + 1) / max(len(line.text), 1)
        free = above.left - left if is_right_to_left(line.text) else right - above.right
        if _DOTS.search(above.text) or (free > wide + size and not above.text.endswith(("-", "‐"))):
            paragraphs[-1][-1] += "\n" + line.text
        else:
            paragraphs[-1].append(line.text)
    return [_PdfBlock(tuple(paragraph), True) for paragraph in paragraphs]


def _begins_item(line: Phrase) -> bool:
    return _ITEM.fullmatch(line.text.split(" ")[0]) is not None


def _join(lines: Iterable[str], words: Counter[str]) -> str:
    """Join the lines of a paragraph; a hyphen at the end of a line goes, unless it is the word's own."""
    text = ""
    for line in lines:
        cut = _HYPHENATED.search(text[-60:])
        if not text:
            text = line
        elif cut and line.split(" ")[0] not in CONJUNCTIONS:
            first, second = cut["first"].lower(), re.match(r"[^\W\d_]*", line)[0].lower()  # type: ignore[index]
            own = words[f"{first}-{second}"] > words[first + second]
            known = first in HYPHENATED_HALVES or "-" in first
            keeps = not line[:1].islower() or own or (known and not words[first + second])
            text = (text if keeps else text[:-1]) + line
        elif (_NO_SPACES.match(text[-1]) and _NO_SPACES.match(line)) or (
            _RANGE.search(text[-9:]) and line[0].isdigit()
        ):
            text += line
        else:
            text += " " + line
    return text
