"""Write a run's turns, verdicts and hallucinations as Parquet tables, for analysis elsewhere.

The journals stay, and hallulab reads these alone: a table is written whole, and a journal line by line.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hallulab.scenarios.files.atomic import write_whole_file
from hallulab.scenarios.transcript import Conversation, Verdict
from hallulab.simulator.records.folder import RunFolder
from hallulab.simulator.records.journals import Judged
from hallulab.simulator.report.frames import (
    SPANS,
    TURNS,
    VERDICTS,
    FrameColumn,
    RowSource,
    list_span_sources,
    list_turn_sources,
    list_verdict_sources,
)

if TYPE_CHECKING:
    import pyarrow as pa

_BATCH = 5_000
"""Rows that are written at once."""

_Sources = Callable[[Conversation, Sequence[Verdict]], Iterable[RowSource]]

_TABLES: tuple[tuple[Sequence[FrameColumn], _Sources], ...] = (
    (TURNS, lambda conversation, verdicts: list_turn_sources(conversation)),
    (VERDICTS, list_verdict_sources),
    (SPANS, list_span_sources),
)
"""The columns of each table, and where its rows come from, in the order of `RunFolder.tables`."""


def write_tables(folder: RunFolder) -> dict[Path, int]:
    """Write the tables of a run in one pass over its journals, and return how many rows each has.

    Rows are in the order of scenario, persona, seed and turn; those of a run in shards are so shard by shard.

    Raises:
        UsageError: a journal is damaged, or a table is a link to elsewhere.
        OperationalError: a table cannot be written; the old ones are intact.
    """
    folder.require()
    folder.refuse_links_out(folder.tables)
    with ExitStack() as files:
        tables = [
            files.enter_context(_Table(files.enter_context(write_whole_file(path)), columns))
            for path, (columns, _) in zip(folder.tables, _TABLES, strict=True)
        ]
        for conversation, verdicts in _iterate_judged(folder):
            for table, (_, sources) in zip(tables, _TABLES, strict=True):
                table.add(sources(conversation, verdicts))
    return {path: table.rows for path, table in zip(folder.tables, tables, strict=True)}


def _iterate_judged(folder: RunFolder) -> Iterator[Judged]:
    saved = folder.read_experiment()
    for part in folder.iterate_journals():
        yield from part.current(saved).judged()


class _Table:
    """A Parquet file that grows by batches."""

    def __init__(self, path: Path, columns: Sequence[FrameColumn]) -> None:
        from pyarrow import parquet

        self._columns, self._schema = columns, build_schema(columns)
        self._writer = parquet.ParquetWriter(path, self._schema)
        self._waiting: list[RowSource] = []
        self.rows = 0

    def add(self, sources: Iterable[RowSource]) -> None:
        """Add rows."""
        self._waiting.extend(sources)
        if len(self._waiting) >= _BATCH:
            self._write()

    def _write(self) -> None:
        import pyarrow as pa

        cells: dict[str, list[Any]] = {
            column.name: [column.cell(row) for row in self._waiting] for column in self._columns
        }
        self._writer.write_table(pa.Table.from_pydict(cells, schema=self._schema))
        self.rows += len(self._waiting)
        self._waiting.clear()

    def __enter__(self) -> _Table:
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        if kind is None:
            self._write()
        self._writer.close()


def build_schema(columns: Sequence[FrameColumn]) -> pa.Schema:
    """Return the schema of a table with these columns."""
    import pyarrow as pa

    types = {
        "string": pa.string(),
        "Int64": pa.int64(),
        "Float64": pa.float64(),
        "boolean": pa.bool_(),
        "object": pa.list_(pa.string()),
    }
    return pa.schema([(column.name, types[column.dtype]) for column in columns])
