"""Tables of Excel (`rows`): the first sheet with a header that is known, whatever stands above it."""

from __future__ import annotations

import io
import zipfile
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

from hallulab.scenarios.chats.chat_format import ChatFormat, FileStart, ReadChat
from hallulab.scenarios.chats.reading import Reading
from hallulab.scenarios.chats.row_kinds import is_header, is_later_header
from hallulab.scenarios.chats.rows import PlacedRow, read_rows, require_unique
from hallulab.scenarios.chats.values import FormatError
from hallulab.scenarios.errors import UsageError
from hallulab.scenarios.extras import require_extra
from hallulab.scenarios.files.data_files import read_bytes
from hallulab.scenarios.text.wording import shorten_line

LARGEST = 100_000_000
"""Bytes of a file at most …"""
LARGEST_UNPACKED = 1_000_000_000
"""… and of its parts unpacked."""
_MOST_ROWS, _MOST_COLUMNS = 1_048_576, 500
"""Excel's own limit, and more columns than a table of chats has. Sheets may claim any number."""
_MOST_BEFORE = 10
"""Rows among which the header is looked for."""


def read(path: Path, reading: Reading) -> Iterator[ReadChat]:
    """Yield the conversations of the first sheet; others are named.

    Raises:
        UsageError: it is no table of Excel, or the extra `tables` is not installed.
        FormatError: a cell is wrong, or a column is missing.
    """
    require_extra("tables", "openpyxl", use=f"{path}: Excel")
    return read_rows(path, _read_cells(path, reading), reading)


def _read_cells(path: Path, reading: Reading) -> Iterator[PlacedRow]:
    from openpyxl import load_workbook

    content = io.BytesIO(read_bytes(path, LARGEST))
    try:
        with zipfile.ZipFile(content) as archive:
            if sum(member.file_size for member in archive.infolist()) > LARGEST_UNPACKED:
                raise UsageError(f"{path}: unpacks to more than {LARGEST_UNPACKED:,} bytes. Save it as CSV.")
        book = load_workbook(content, read_only=True, data_only=True, keep_links=False)
        sheet, begins = _find_header(book.worksheets, reading)
        if len(book.worksheets) > 1:
            others = ", ".join(repr(one.title) for one in book.worksheets if one is not sheet)
            reading.note(f"The sheet {sheet.title!r} was read, and not {others}.")
        header: list[str] | None = None
        rows = sheet.iter_rows(begins, _MOST_ROWS, max_col=_MOST_COLUMNS, values_only=True)
        for number, cells in enumerate(rows, start=begins):
            if all(cell is None for cell in cells):
                continue
            if header is None:
                header = _name_columns(cells)
                require_unique(header, f"row {number}")
                continue
            if any(cell is not None and not name for name, cell in zip(header, cells, strict=True)):
                reading.count("Rows with cells in a column without a name, which are not read")
            named = {name: cell for name, cell in zip(header, cells, strict=False) if name}
            plain = {
                name: cell if cell is None or isinstance(cell, bool | int | float) else str(cell)
                for name, cell in named.items()
            }
            yield PlacedRow(f"row {number}", number, plain)
    except (FormatError, UsageError):
        raise
    except Exception as error:  # openpyxl raises nearly any exception for a damaged file
        raise UsageError(
            f"{path}: no table of Excel ({shorten_line(str(error))}). Save it again, or as CSV."
        ) from error


def _find_header(sheets: Sequence[Any], reading: Reading) -> tuple[Any, int]:
    """Return the first sheet with a header that is known, and its row; else the first sheet from its start.

    Raises:
        FormatError: there is no sheet.
    """
    if not sheets:
        raise FormatError("it has no sheet. Save it again, or as CSV.")
    for sheet in sheets:
        rows = sheet.iter_rows(max_row=_MOST_BEFORE, max_col=_MOST_COLUMNS, values_only=True)
        for number, cells in enumerate(rows, start=1):
            names = _name_columns(cells)
            known = is_header if number == 1 else is_later_header
            if known(names, reading.mapping):
                return sheet, number
    return sheets[0], 1


def _name_columns(cells: Iterable[Any]) -> list[str]:
    return [str(cell).strip() if cell is not None else "" for cell in cells]


def recognize(start: FileStart) -> bool:
    """Return whether it is an archive that begins as Excel's tables do, or is called so."""
    return start.data.startswith(b"PK\x03\x04") and (
        b"xl/" in start.data or start.path.suffix.lower() in (".xlsx", ".xlsm")
    )


INFO = ChatFormat(
    name="excel",
    about="tables of Excel, their first sheet",
    endings=(".xlsx", ".xlsm"),
    read=read,
    recognize=recognize,
    rank=12,
)
