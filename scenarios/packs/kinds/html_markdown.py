"""Convert a page to Markdown: by markdownify, but with merged cells and the numbers of lists."""

from __future__ import annotations

import re
from typing import Any

from bs4 import Tag
from markdownify import ATX, MarkdownConverter

from hallulab.scenarios.packs.kinds.cell_lines import spread_lines
from hallulab.scenarios.packs.kinds.html_marks import MARK

_MOST_COLUMNS = 1000
_GROWTH = 50
"""A table may have so many times the cells that are written, by merged ones; else none is merged."""
_FENCES = re.compile(r"`{3,}")


def convert(page: Tag) -> str:
    """Return the text of a page."""
    plain = _Converter(
        heading_style=ATX,
        strip=["a", "b", "strong", "em", "i"],
        escape_asterisks=False,
        escape_underscores=False,
    )
    return str(plain.convert_soup(page))


class _Converter(MarkdownConverter):
    def __init__(self, **options: Any) -> None:
        super().__init__(**options)
        self._cells: dict[int, str] = {}

    def convert_td(self, el: Tag, text: str, parent_tags: set[str]) -> str:
        """Keep a cell's text for its table."""
        self._cells[id(el)] = text.replace("|", "\\|")
        return f"\n\n{text.strip()}\n\n"

    convert_th = convert_td

    def convert_br(self, el: Tag, text: str, parent_tags: set[str]) -> str:
        """End a line, in a cell too: its lines may be rows."""
        return "\n" if "td" in parent_tags else str(super().convert_br(el, text, parent_tags))  # type: ignore[misc]

    def convert_p(self, el: Tag, text: str, parent_tags: set[str]) -> str:
        """Return a paragraph; in a cell it is a line."""
        inside = "td" in parent_tags
        return f"\n{text.strip()}\n" if inside else str(super().convert_p(el, text, parent_tags))  # type: ignore[misc]

    def convert_tr(self, el: Tag, text: str, parent_tags: set[str]) -> str:
        """Leave a row to its table."""
        return text

    def convert_caption(self, el: Tag, text: str, parent_tags: set[str]) -> str:
        """Leave the caption to its table."""
        return f"\n\n{text.strip()}\n\n"

    def convert_table(self, el: Tag, text: str, parent_tags: set[str]) -> str:
        """Return a table; one that only arranges its cells is these, one after the other."""
        if el.get("role") in ("presentation", "none") or el.find("table") is not None:
            return f"\n\n{text.strip()}\n\n"
        heads, rows = _list_rows(el)
        written = [[self._cells.get(id(cell), "") for cell in row] for row in _merge([*heads, *rows])]
        if not written:
            return f"\n\n{text.strip()}\n\n"
        width = max(map(len, written))
        written = [row + [""] * (width - len(row)) for row in written]
        count = len(heads)
        told = [line for row in written[count:] for line in spread_lines(row)]
        tops = [[" ".join(cell.split()) for cell in row] for row in written[:count]] or [told.pop(0)]
        # The heads of a column, which stand in several rows, are one.
        head = [" ".join(dict.fromkeys(filter(None, column))) for column in zip(*tops, strict=True)]
        # A row that is a single merged cell, such as a heading within a table, says it once.
        rest = [[row[0], *[""] * (width - 1)] if len(set(row)) == 1 else row for row in told]
        lines = [head, ["---"] * width, *rest]
        caption = el.find("caption", recursive=False)
        above = f"{' '.join(caption.get_text().split())}\n\n" if caption else ""
        return f"\n\n{above}" + "\n".join(f"| {' | '.join(line)} |" for line in lines) + "\n\n"

    def convert_li(self, el: Tag, text: str, parent_tags: set[str]) -> str:
        """Return an item with the number that the page shows."""
        if not el.has_attr(MARK) or not text.strip():
            return str(super().convert_li(el, text, parent_tags))  # type: ignore[misc]
        mark = f"{el[MARK]} "
        return mark + text.strip().replace("\n", "\n" + " " * len(mark)) + "\n"

    def convert_pre(self, el: Tag, text: str, parent_tags: set[str]) -> str:
        """Return code between fences that are longer than those in it."""
        fence = "`" * max([3, *(len(found) + 1 for found in _FENCES.findall(text))])
        return f"\n\n{fence}\n{text.strip(chr(10))}\n{fence}\n\n" if text.strip() else ""

    def convert_summary(self, el: Tag, text: str, parent_tags: set[str]) -> str:
        """Return the line of a text that opens."""
        return f"\n\n{text.strip()}\n\n"

    def convert_option(self, el: Tag, text: str, parent_tags: set[str]) -> str:
        """Return a choice of a form, or what stands in its field, or a label of a drawing, apart."""
        return f"\n\n{text.strip()}\n\n" if "_inline" not in parent_tags else f" {text.strip()} "

    convert_textarea = convert_text = convert_option


def _list_rows(table: Tag) -> tuple[list[list[Tag]], list[list[Tag]]]:
    """Return the rows of heads, and the others."""
    parts = table.find_all(("thead", "tbody", "tfoot", "tr"), recursive=False)
    has_head = any(part.name == "thead" for part in parts)
    heads: list[list[Tag]] = []
    rows: list[list[Tag]] = []
    for part in parts:
        for row in [part] if part.name == "tr" else part.find_all("tr", recursive=False):
            cells = row.find_all(("td", "th"), recursive=False)
            only_heads = bool(cells) and all(cell.name == "th" for cell in cells)
            is_head = part.name == "thead" or (only_heads and not rows and not has_head)
            (heads if is_head else rows).append(cells)
    return [row for row in heads if row], [row for row in rows if row]


def _merge(rows: list[list[Tag]]) -> list[list[Tag]]:
    """Return rows in which a merged cell stands in each of its places."""
    spans = {
        id(cell): (_read_span(cell, "colspan"), _read_span(cell, "rowspan")) for row in rows for cell in row
    }
    places = sum(wide * min(high, len(rows)) for wide, high in spans.values())
    if places > _GROWTH * (len(spans) + _GROWTH):
        return rows
    merged: list[list[Tag]] = []
    from_above: dict[int, tuple[Tag, int]] = {}
    for row in rows:
        line: list[Tag] = []
        below: dict[int, tuple[Tag, int]] = {}
        waiting = list(reversed(row))
        while waiting or len(line) in from_above:
            if len(line) in from_above:
                cell, left = from_above[len(line)]
                if left > 1:
                    below[len(line)] = cell, left - 1
                line.append(cell)
                continue
            cell = waiting.pop()
            wide, high = spans[id(cell)]
            for _ in range(wide):
                if high > 1:
                    below[len(line)] = cell, high - 1
                line.append(cell)
        merged.append(line)
        from_above = below
    return merged


def _read_span(cell: Tag, name: str) -> int:
    text = str(cell.get(name, "1")).strip()
    return max(1, min(_MOST_COLUMNS, int(text))) if re.fullmatch(r"\d{1,6}", text, re.ASCII) else 1
