"""Spans of OpenInference (Phoenix), which are read as those of OpenTelemetry are (`otel`).

Data frames of Phoenix' client are read from CSV and Parquet, too: a column for each attribute, such as
`attributes.input.value`, and `context.trace_id`; and tables of Logfire, with one column of `attributes`.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator
from pathlib import Path

from hallulab.scenarios.chats import otel
from hallulab.scenarios.chats.chat_format import ChatFormat, FileStart, ReadChat
from hallulab.scenarios.chats.reading import Reading
from hallulab.scenarios.chats.traces import read_traces
from hallulab.scenarios.chats.values import Value, open_chats
from hallulab.scenarios.errors import UsageError
from hallulab.scenarios.files.tables import read_parquet_rows

_COLUMN = "context.trace_id"
_LOGFIRE = {"trace_id", "span_id", "attributes"}
_PARQUET = b"PAR1"


def read(path: Path, reading: Reading) -> Iterator[ReadChat]:
    """Yield the conversations of a file of traces, in JSON or in a table."""
    with open_chats(path) as file:
        start = file.read(len(_PARQUET))
    if start == _PARQUET:
        rows = enumerate(read_parquet_rows(path), start=1)
        values = (Value(f"row {number}", number, row) for number, row in rows)
        yield from read_traces(path, reading, otel.read_otel_spans, values)
    elif start.removeprefix(b"\xef\xbb\xbf").lstrip()[:1] in (b"{", b"["):
        yield from otel.read(path, reading)
    else:
        yield from read_traces(path, reading, otel.read_otel_spans, _read_csv(path))


def _read_csv(path: Path) -> Iterator[Value]:
    with open_chats(path) as file:
        rows = csv.DictReader(io.TextIOWrapper(file, encoding="utf-8-sig", newline=""), strict=True)
        try:
            for row in rows:
                cells = {name: cell for name, cell in row.items() if name is not None and cell is not None}
                yield Value(f"line {rows.line_num}", rows.line_num, cells)
        except (csv.Error, UnicodeDecodeError) as error:
            raise UsageError(
                f"{path}, line {rows.line_num + 1}: no CSV in UTF-8 ({error}). Write the data frame again."
            ) from error


def recognize(start: FileStart) -> bool:
    """Return whether the file is a table with the columns of a data frame of Phoenix."""
    if start.data.startswith(_PARQUET):
        return start.path.is_file() and _COLUMN in next(read_parquet_rows(start.path), {})
    if start.value is not None:
        return False
    header = start.data.partition(b"\n")[0].decode("utf-8", "replace").lstrip("\ufeff")
    names = {name.strip(' "\r') for name in header.split(",")}
    return _COLUMN in header or names >= _LOGFIRE


INFO = ChatFormat(
    name="openinference",
    about="spans of OpenInference, also in tables",
    endings=(".json", ".jsonl", ".csv", ".parquet"),
    read=read,
    recognize=recognize,
    rank=4,
)
