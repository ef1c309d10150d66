"""Text of workbooks (XLSX): a heading and a table for each sheet."""

from __future__ import annotations

import io
from collections import defaultdict
from typing import TYPE_CHECKING

from hallulab.scenarios.packs.kinds import Extracted, note_pictures
from hallulab.scenarios.packs.kinds.number_formats import show
from hallulab.scenarios.packs.kinds.parts import open_archive
from hallulab.scenarios.packs.kinds.table_text import LARGEST_TABLE, write_sheet

if TYPE_CHECKING:
    from openpyxl.worksheet.worksheet import Worksheet


def read(content: bytes) -> Extracted:
    """Return what the sheets show: values of formulas as they were saved, numbers in their formats.

    Hidden sheets, rows and columns are left out. A merged cell stands in each of its rows and columns.

    Raises:
        ValueError: it has a password, or it is too large.
    """
    from openpyxl import load_workbook

    with open_archive(content) as archive:
        names = archive.namelist()
    book = load_workbook(io.BytesIO(content), data_only=True)
    written: list[str] = []
    notes = ["its macros were not read"] if "xl/vbaProject.bin" in names else []
    for sheet in book.worksheets:
        if sheet.sheet_state != "visible":
            notes.append(f"the sheet {sheet.title} is hidden and was left out")
            continue
        rows, hidden = _read_rows(sheet)
        if hidden:
            notes.append(f"hidden rows and columns of the sheet {sheet.title} were left out: {hidden}")
        if table := write_sheet(rows):
            written.append(f"## {sheet.title}\n\n{table}")
    formulas = load_workbook(io.BytesIO(content))
    unknown = sum(
        cell.data_type == "f" and sheet._cells[place].value is None
        for sheet in book.worksheets
        if sheet.sheet_state == "visible"
        for place, cell in formulas[sheet.title]._cells.items()
    )
    if unknown:
        notes.append(f"formulas without a saved value: {unknown}; open and save it to compute them")
    notes += note_pictures(sum(name.startswith(("xl/charts/chart", "xl/media/")) for name in names))
    title = book.properties.title
    return Extracted("\n\n".join(written), title or None, tuple(notes))


def _read_rows(sheet: Worksheet) -> tuple[list[list[str]], int]:
    """Return the rows that are shown, from the first to the last column with text.

    Of several empty rows one is returned. Also returns how many rows and columns with text are hidden.
    """
    hidden_rows = {number for number, row in sheet.row_dimensions.items() if row.hidden}
    hidden_columns = {
        number
        for column in sheet.column_dimensions.values()
        if column.hidden
        for number in range(column.min, min(column.max, sheet.max_column) + 1)
    }
    texts: dict[int, dict[int, str]] = defaultdict(dict)
    # Only the cells that exist: `iter_rows` would make all up to the last one, which may be the 17 billionth.
    for (row, column), cell in sheet._cells.items():
        if cell.has_style:
            colour = cell.font.color
            is_white = colour and (colour.rgb == "FFFFFFFF" if colour.type == "rgb" else colour.theme == 0)
            if cell.font.strike or (is_white and cell.fill.fill_type is None):
                continue
        if text := show(cell.value, cell.number_format):
            texts[row][column] = text
    for merged in sheet.merged_cells.ranges:
        text = texts[merged.min_row].get(merged.min_col, "")
        if not text:
            continue
        if merged.size["rows"] * merged.size["columns"] > LARGEST_TABLE:
            raise ValueError(f"a merged cell has more than {LARGEST_TABLE:,} cells")
        for row, column in merged.cells:
            texts[row][column] = text
    shown = {
        row: {column: text for column, text in cells.items() if column not in hidden_columns}
        for row, cells in sorted(texts.items())
        if row not in hidden_rows
    }
    columns = sorted({column for cells in shown.values() for column in cells})
    if not columns:
        return [], 0
    wanted = [column for column in range(columns[0], columns[-1] + 1) if column not in hidden_columns]
    if len(wanted) * len(shown) > LARGEST_TABLE:
        raise ValueError(f"its sheet {sheet.title} has more than {LARGEST_TABLE:,} cells")
    left_out = sum(row in texts for row in hidden_rows)
    left_out += len(hidden_columns & {column for cells in texts.values() for column in cells})
    rows: list[list[str]] = []
    last = 0
    for row, cells in shown.items():
        if rows and row > last + 1:
            rows.append([])
        rows.append([cells.get(column, "") for column in wanted])
        last = row
    return rows, left_out
