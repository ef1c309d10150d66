"""Parquet: tables of rows (`rows`). In ours a row is a conversation.

`messages` has `role` and `content`, as trainers read them, and the columns beside it have what else a
conversation has.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from itertools import chain, islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hallulab.scenarios.chats.chat_format import ChatFormat, FileStart, ReadChat
from hallulab.scenarios.chats.openai import build_openai_line, read_openai
from hallulab.scenarios.chats.reading import Reading, place_in
from hallulab.scenarios.chats.record import KEY, PARTS, Marked, build_chat_context
from hallulab.scenarios.chats.rows import PlacedRow, read_rows
from hallulab.scenarios.chats.values import FormatError
from hallulab.scenarios.errors import UsageError
from hallulab.scenarios.extras import require_extra
from hallulab.scenarios.files.json_text import replace_surrogates
from hallulab.scenarios.files.tables import read_parquet_rows
from hallulab.scenarios.text.wording import shorten_line

if TYPE_CHECKING:
    import pyarrow as pa

DATA = "data"
"""Folder of the tables in a data set folder."""
FILE = f"{DATA}/train.parquet"
"""The table that we write there; it is the split `train`."""

_BATCH = 500


def build_schema() -> pa.Schema:
    """Return the columns. Plain ones are searched and filtered; `turns` has lists of objects."""
    import pyarrow as pa

    text, whole = pa.string(), pa.int64()
    passage = pa.struct({"id": text, "document": text, "text": text, "score": pa.float64(), "topic": text})
    span = pa.struct({"detector": text, "start": whole, "end": whole, "text": text})
    turn = pa.struct(
        {
            "query": text,
            "passages": pa.list_(passage),
            "steps": pa.list_(pa.struct({"name": text, "text": text})),
            "spans": pa.list_(span),
            "verdicts": text,
            "goal": text,
            "act": text,
        }
    )
    named = dict.fromkeys(("scenario", "persona", "chatbot", "model"), text)
    return pa.schema(
        {
            "id": text,
            "messages": pa.list_(pa.struct({"role": text, "content": text})),
            **named,
            "seed": whole,
            "stop_reason": text,
            "error": text,
            "branch": pa.struct({"conversation": text, "turn": whole}),
            "turns": pa.list_(turn),
        }
    )


def write(path: Path, chats: Iterable[Marked], without: frozenset[str]) -> None:
    """Write conversations, some at a time.

    Raises:
        OSError: the file cannot be written.
        UsageError: the extra `tables` is not installed.
    """
    require_extra("tables", "pyarrow", use="Parquet")
    import pyarrow as pa
    from pyarrow import parquet

    columns = build_schema()
    with parquet.ParquetWriter(path, columns) as writer:
        rows = (_build_row(marked, without) for marked in chats)
        while batch := list(islice(rows, _BATCH)):
            writer.write_table(pa.Table.from_pylist(batch, schema=columns))


def read(path: Path, reading: Reading) -> Iterator[ReadChat]:
    """Yield the conversations of a table, or of all tables of a folder.

    Raises:
        UsageError: there is no table, or one is no Parquet.
        FormatError: a row is wrong, or a column is missing.
    """
    folders = (path.glob(f"{DATA}/*.parquet"), path.glob("*.parquet"))
    tables = [path] if path.is_file() else next(filter(None, map(sorted, folders)), [])
    if not tables:
        raise UsageError(f"{path}: no Parquet file in it or in {DATA}/. Name the folder of a data set.")
    if len(tables) > 1:
        told = shorten_line(", ".join(sorted({table.stem for table in tables})))
        reading.note(f"All {len(tables)} tables of the folder were read together: {told}.")
    names = [f"{replace_surrogates(table.name)}, " if len(tables) > 1 else "" for table in tables]
    rows = (
        PlacedRow(f"{beside}row {number}", number, row)
        for table, beside in zip(tables, names, strict=True)
        for number, row in enumerate(read_parquet_rows(table), start=1)
    )
    first = next(rows, None)
    if first is not None and {"turns", "persona"} <= first.cells.keys():
        yield from _read_own(path, chain([first], rows), reading)
    elif first is not None:
        yield from read_rows(path, chain([first], rows), reading)


def _read_own(path: Path, rows: Iterable[PlacedRow], reading: Reading) -> Iterator[ReadChat]:
    """Yield the conversations of rows that we wrote."""
    for place, number, row in rows:
        beside = {key: value for key, value in row.items() if key != "messages"}
        try:
            said = {"messages": row.get("messages"), KEY: beside}
            yield ReadChat(place_in(path, place), read_openai(said, f"row-{number}", reading))
        except FormatError as error:
            raise FormatError(str(error), place) from error


def _build_row(marked: Marked, without: frozenset[str]) -> dict[str, Any]:
    beside = build_chat_context(marked, without).model_dump(mode="json")
    for turn in beside["turns"]:
        turn["verdicts"] = json.dumps(turn["verdicts"], ensure_ascii=False)
    return {**build_openai_line(marked, frozenset(PARTS)), **beside}


def recognize(start: FileStart) -> bool:
    """Return whether the file begins as Parquet does."""
    return start.data.startswith(b"PAR1")


INFO = ChatFormat(
    name="parquet",
    about="tables of rows: with a column of messages, or with questions and answers",
    endings=(".parquet",),
    read=read,
    recognize=recognize,
    write=write,
    rank=9,
)
