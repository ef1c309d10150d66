"""Spans of OpenInference (Phoenix), which are read as those of OpenTelemetry are (`otel`).

Data frames of Phoenix' client are read from CSV and Parquet, too: a column for each attribute, such as
`attributes.input.value`, and `context.trace_id`; and tables of Logfire, with one column of `attributes`.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from hallulab.scenarios.chats import otel
from hallulab.scenarios.chats.chat_format import ChatFormat, FileStart, ReadChat
from hallulab.scenarios.chats.csv import read_table_values
from hallulab.scenarios.chats.reading import Reading
from hallulab.scenarios.chats.traces import read_traces
from hallulab.scenarios.chats.values import Value, open_chats
from hallulab.scenarios.files.tables import read_parquet_rows

_COLUMN = "context.trace_id"
_LOGFIRE = {"trace_id", "span_id", "attributes"}
_PARQUET = b"PAR1"


def read(path: Path, reading: Reading) -> Iterator[ReadChat]:
    """Yield the conversations of a file of traces, in JSON or in a table."""
    with open_chats(path) as file:
        is_parquet = file.read(len(_PARQUET)) == _PARQUET
    if is_parquet:
        rows = enumerate(read_parquet_rows(path), start=1)
        values: Iterator[Value] | None = (Value(f"row {number}", number, row) for number, row in rows)
    else:
        values = read_table_values(path, reading)
    return read_traces(path, reading, otel.read_otel_spans, values)


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
