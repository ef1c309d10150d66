"""Parquet: a row is a conversation.

`messages` has `role` and `content`, as trainers read them, and the columns beside it have what else a
conversation has.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hallulab.scenarios.chats.chat_format import ChatFormat, FileStart, ReadChat
from hallulab.scenarios.chats.openai import build_openai_line, read_openai
from hallulab.scenarios.chats.reading import Reading
from hallulab.scenarios.chats.record import KEY, PARTS, Marked, build_chat_context
from hallulab.scenarios.chats.values import FormatError
from hallulab.scenarios.errors import UsageError
from hallulab.scenarios.files.data_files import replace_surrogates
from hallulab.scenarios.files.opening import open_file
from hallulab.scenarios.transcript import Conversation

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
    """
    import pyarrow as pa
    from pyarrow import parquet

    columns = build_schema()
    with parquet.ParquetWriter(path, columns) as writer:
        rows = (_build_row(marked, without) for marked in chats)
        while batch := list(islice(rows, _BATCH)):
            writer.write_table(pa.Table.from_pylist(batch, schema=columns))


def read(path: Path, reading: Reading) -> Iterator[ReadChat]:
    """Yield a conversation of each row of a table, or of all tables of a folder.

    Raises:
        UsageError: there is no table, one is no Parquet or has no column `messages`, or a row is wrong.
    """
    for table in _find_tables(path):
        for number, row in enumerate(_read_rows(table), start=1):
            try:
                yield ReadChat(
                    f"{table}, row {number}", read_row(row, f"{replace_surrogates(table.stem)}-{number}")
                )
            except FormatError as error:
                raise UsageError(f"{table}, row {number}: {error}") from error


def _find_tables(path: Path) -> list[Path]:
    if path.is_file():
        return [path]
    found = sorted(path.glob(f"{DATA}/*.parquet")) or sorted(path.glob("*.parquet"))
    if not found:
        raise UsageError(f"{path}: no Parquet file in it or in {DATA}/. Name the folder of a data set.")
    return found


def read_row(row: Mapping[str, Any], name: str) -> Conversation:
    """Make a conversation of a row; of tables that we did not write, the columns of OpenAI's lines count."""
    if "turns" not in row or "persona" not in row:
        return read_openai(row, name)
    beside = {key: value for key, value in row.items() if key != "messages"}
    return read_openai({"messages": row["messages"], KEY: beside}, name)


def _build_row(marked: Marked, without: frozenset[str]) -> dict[str, Any]:
    return {
        **build_openai_line(marked, frozenset(PARTS)),
        **build_chat_context(marked, without).model_dump(mode="json"),
    }


def _read_rows(path: Path) -> Iterator[dict[str, Any]]:
    import pyarrow as pa
    from pyarrow import parquet

    try:
        with open_file(path) as opened, parquet.ParquetFile(opened) as file:
            if "messages" not in file.schema_arrow.names:
                raise UsageError(f"{path}: no column `messages`. Name the column with the messages so.")
            for batch in file.iter_batches(batch_size=_BATCH):
                yield from map(_convert_to_json, batch.to_pylist())
    except OSError as error:
        raise UsageError(f"{path}: cannot be read ({error}). Correct the path, or write it anew.") from error
    except UnicodeDecodeError as error:
        raise UsageError(f"{path}: a text in it is not UTF-8. Write it anew in UTF-8.") from error
    except pa.ArrowException as error:
        raise UsageError(f"{path}: no Parquet ({error}). Write it anew.") from error


def _convert_to_json(value: Any) -> Any:
    """Return a value of a table as JSON knows it: texts in place of times, decimals and bytes."""
    if isinstance(value, Mapping):
        return {key: _convert_to_json(one) for key, one in value.items()}
    if isinstance(value, list):
        return [_convert_to_json(one) for one in value]
    if isinstance(value, bytes):
        return value.decode("utf-8", "replace")
    return value if value is None or isinstance(value, bool | int | float | str) else str(value)


def recognize(start: FileStart) -> bool:
    """Return whether the file begins as Parquet does."""
    return start.data.startswith(b"PAR1")


INFO = ChatFormat(
    name="parquet",
    about="tables with a column of messages",
    endings=(".parquet",),
    read=read,
    recognize=recognize,
    write=write,
    rank=9,
)
