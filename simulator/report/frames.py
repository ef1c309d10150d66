"""The columns of a run's frames and Parquet tables: name, pandas dtype, meaning and cell, in one place.

A value that is not known or was not judged is missing (`pandas.NA`) in every column, so it never counts as
clean. docs/python.md shows the same tables. A test compares them.

The Parquet tables are for analysis elsewhere. hallulab reads the journals alone: a table is written whole,
and a journal line by line.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from contextlib import ExitStack
from operator import attrgetter
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from hallulab.scenarios.extras import require_extra
from hallulab.scenarios.files.atomic import write_whole_file
from hallulab.scenarios.transcript import Call, Conversation, Verdict
from hallulab.simulator.metrics.spending import sum_known
from hallulab.simulator.records.folder import RunFolder

if TYPE_CHECKING:
    import pyarrow as pa


class RowSource(NamedTuple):
    """The source of a row."""

    conversation: Conversation
    turn: int
    of: Any
    """The `Turn`, a `Verdict` on it, or a `Span` of the verdict."""
    calls: Sequence[Call] = ()
    detector: str = ""
    """Name of the detector; empty for a turn."""


class FrameColumn(NamedTuple):
    """A column of a frame."""

    name: str
    dtype: str
    """Its pandas dtype; a cell of dtype `object` is a list of texts."""
    meaning: str
    cell: Callable[[RowSource], Any]
    """Makes the cell from a row's source."""


def _column(name: str, dtype: str, meaning: str, cell: str | Callable[[RowSource], Any] = "") -> FrameColumn:
    """Make a column. Its cell is a field of the source; by default, the field of `of` with its name."""
    return FrameColumn(
        name, dtype, meaning, attrgetter(cell or f"of.{name}") if isinstance(cell, str) else cell
    )


_TURN = (
    _column("conversation", "string", "identifier of the conversation; with `turn` it names a reply",
            "conversation.id"),
    _column("persona", "string", "identifier of the persona in its pack", "conversation.persona"),
    _column("chatbot", "string", "name of the chatbot", "conversation.chatbot"),
    _column("seed", "Int64", "seed of the conversation; persona and seed pair conversations of chatbots",
            "conversation.seed"),
    _column("turn", "Int64", "index of the turn, from 0", "turn"),
    _column("depth", "Int64", "exchanges before the turn: more than `turn` where a history was given "
            "([fixed-prefix.md](fixed-prefix.md))", lambda source: source.conversation.depth(source.turn)),
)  # fmt: skip
"""First columns of every frame."""

_COSTS = (
    _column("prompt_tokens", "Int64", "tokens that these calls read, as far as the servers reported them",
            lambda source: sum_known([call.prompt_tokens for call in source.calls])),
    _column("completion_tokens", "Int64", "tokens that they wrote, likewise",
            lambda source: sum_known([call.completion_tokens for call in source.calls])),
    _column("seconds", "Float64", "their latencies, added up",
            lambda source: sum(call.latency_s for call in source.calls)),
)  # fmt: skip

TURNS = (
    *_TURN,
    _column("scenario", "string", "name of the scenario pack", "conversation.scenario"),
    _column("model", "string", "name of the chatbot's model", "conversation.model"),
    _column("manner", "string", "how the user speaks, by names of manners; missing: as the persona does",
            "conversation.manner"),
    _column("user_model", "string", "the model that played the user, where several do",
            "conversation.user_model"),
    _column("pressure", "string", "how the user presses the chatbot; missing: it does not",
            lambda source: source.conversation.pressure and source.conversation.pressure.kind),
    _column("user", "string", "what the user said"),
    _column("act", "string", "the user's way of talking in this turn; missing: none was drawn"),
    _column("query", "string", "the stand-alone query that was searched for, where the chatbot made one"),
    _column("reply", "string", "what the chatbot answered"),
    _column("passages", "object", "texts of the passages that the chatbot was given, best first",
            lambda source: [passage.text for passage in source.of.passages]),
    _column("documents", "object", "names of the documents that they were cut from, in the same order",
            lambda source: [passage.document for passage in source.of.passages]),
    _column("calls", "Int64", "model calls of the chatbot", lambda source: len(source.calls)),
    *_COSTS,
    _column("stop_reason", "string", "why the conversation ended: `goal_reached`, `gave_up`, `script_ended`, "
            "`max_turns`, `loop`, `error`, or `unknown` of an imported one", "conversation.stop_reason"),
)  # fmt: skip

VERDICTS = (
    *_TURN,
    _column("detector", "string", "name of the detector"),
    _column("version", "string", "version of the detector"),
    _column("outcome", "string", "`scored`, `abstained` or `failed`"),
    _column("score", "Float64", "score of the reply, higher is worse"),
    _column("flagged", "boolean", "whether the score reaches the detector's threshold"),
    _column("spans", "Int64", "number of hallucinations; missing where the verdict does not say where",
            lambda source: len(source.of.spans or ()) if source.of.localised else None),
    _column("truncated", "boolean", "whether evidence or reply were cut to fit the model"),
    _column("calls", "Int64", "model calls of the detector", lambda source: len(source.calls)),
    *_COSTS,
    _column("error", "string", "why it abstained or failed"),
)  # fmt: skip
"""Columns of `Run.verdicts`."""

SPANS = (
    *_TURN,
    _column("detector", "string", "name of the detector", "detector"),
    _column("start", "Int64", "first character in the reply; missing where the text was not found there"),
    _column("end", "Int64", "one past the last character, likewise"),
    _column("text", "string", "the flagged text: `reply[start:end]`, or else the detector's quotation"),
    _column("severity", "Float64", "1 (harmless) to 5 (critical), of detectors that rate what follows"),
    _column("probability", "Float64", "that the evidence does not support it, of detectors that estimate it"),
    _column("score", "Float64", "the detector's score of the span, higher is worse"),
    _column("reason", "string", "why it was flagged"),
    _column("evidence", "string", "text or identifier of the passage that the judgement rests on"),
)


def list_turn_sources(conversation: Conversation) -> list[RowSource]:
    """Return the sources of the rows of its turns."""
    return [
        RowSource(conversation, turn.index, turn, [call for call in turn.calls if call.role == "chatbot"])
        for turn in conversation.turns
    ]


def list_verdict_sources(conversation: Conversation, verdicts: Iterable[Verdict]) -> list[RowSource]:
    """Return the sources of the rows of verdicts on it."""
    return [RowSource(conversation, found.turn, found, found.calls) for found in verdicts]


def list_span_sources(conversation: Conversation, verdicts: Iterable[Verdict]) -> list[RowSource]:
    """Return the sources of the rows of the hallucinations in it."""
    return [
        RowSource(conversation, found.turn, span, detector=found.detector)
        for found in verdicts
        for span in found.spans or ()
    ]


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
        UsageError: a journal is damaged, a table is a link to elsewhere, or the extra `tables` is not
            installed.
        OperationalError: a table cannot be written; the old ones are intact.
    """
    folder.require()
    require_extra("tables", "pyarrow", use="Parquet")
    folder.refuse_links_out(folder.tables)
    with ExitStack() as files:
        tables = [
            files.enter_context(_Table(files.enter_context(write_whole_file(path)), columns))
            for path, (columns, _) in zip(folder.tables, _TABLES, strict=True)
        ]
        saved = folder.read_experiment()
        for conversation, verdicts in (
            judged for part in folder.iterate_journals() for judged in part.current(saved).judged()
        ):
            for table, (_, sources) in zip(tables, _TABLES, strict=True):
                table.add(sources(conversation, verdicts))
    return {path: table.rows for path, table in zip(folder.tables, tables, strict=True)}


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
