"""A run folder as pandas frames, and the meaning of each of their columns.

The columns of a `Run`'s frames: name, pandas dtype, meaning and cell, in one place.
A value that is not known or was not judged is `pandas.NA` in every column, so it never counts as clean.
docs/python.md shows the same tables. A test compares them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from operator import attrgetter
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from hallulab.scenarios.transcript import Call, Conversation, Verdict
from hallulab.simulator.measure.spending import sum_known
from hallulab.simulator.runs.folder import RunFolder

if TYPE_CHECKING:
    import pandas

    from hallulab.simulator.report.document import RunReport


class RowSource(NamedTuple):
    """The source of a row."""

    conversation: Conversation
    """The conversation that the row is about."""
    turn: int
    """Index of that turn."""
    of: Any
    """The `Turn`, a `Verdict` on it, or a `Span` of the verdict."""
    calls: Sequence[Call] = ()
    """Model calls behind it."""
    detector: str = ""
    """Name of the detector; empty for a turn."""


class FrameColumn(NamedTuple):
    """A column of a frame."""

    name: str
    """Its name."""
    dtype: str
    """Its pandas dtype; a cell of dtype `object` is a list of texts."""
    meaning: str
    """Its meaning."""
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
    _column("prompt_tokens", "Int64", "tokens that these calls read, as far as the servers told",
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
    _column("user", "string", "what the user said"),
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
"""Columns of `Run.turns`."""

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
"""Columns of `Run.spans`."""


class Run:
    """The run in a folder, as it was when it was opened. Nothing is written there.

    Rows are in the order of persona, seed, chatbot and turn, then of detectors' names. Columns are those of
    `hallulab.results`, even without rows. Verdicts of older versions of a detector and earlier tries of a
    conversation are left out, as in the report.

    >>> run = Run("runs/demo")
    >>> run.turns()[["chatbot", "turn", "reply"]]
       chatbot  turn               reply
    0  vanilla     0  The fee is Rs 500.
    >>> run.verdicts()[["detector", "outcome", "flagged", "spans"]]
      detector outcome  flagged  spans
    0  metarag  scored     True      1
    >>> run.spans()[["start", "end", "text"]]
       start  end    text
    0     11   17  Rs 500
    >>> run.report().rows[0].hpt_1
    1.0

    Args:
        path: the folder.

    Raises:
        UsageError: it is no run folder, or a file of it is damaged; names file, line and field.
    """

    def __init__(self, path: str | Path) -> None:
        self._folder = RunFolder(Path(path))
        self._folder.require()
        self._journals = self._folder.read_journals()
        self._saved = self._folder.read_experiment()
        self._conversations = sorted(self._journals.conversations, key=_place)
        self._verdicts = self._counting_verdicts()

    def __repr__(self) -> str:
        return f"Run({str(self.path)!r})"

    @property
    def path(self) -> Path:
        """The folder."""
        return self._folder.path

    @property
    def conversations(self) -> tuple[Conversation, ...]:
        """The conversations with all their data, also those that failed before the first reply."""
        return tuple(self._conversations)

    def turns(self) -> pandas.DataFrame:
        """Return the turns, a row each; columns: `hallulab.results.TURNS`."""
        return _frame(
            TURNS,
            [
                RowSource(chat, turn.index, turn, [call for call in turn.calls if call.role == "chatbot"])
                for chat in self._conversations
                for turn in chat.turns
            ],
        )

    def verdicts(self) -> pandas.DataFrame:
        """Return the verdicts, a row for each turn and detector; columns: `hallulab.results.VERDICTS`."""
        return _frame(
            VERDICTS, [RowSource(chat, found.turn, found, found.calls) for chat, found in self._verdicts]
        )

    def spans(self) -> pandas.DataFrame:
        """Return the hallucinations that detectors found, a row each; columns: `hallulab.results.SPANS`.

        A flagged verdict without places has no row here.
        """
        return _frame(
            SPANS,
            [
                RowSource(chat, verdict.turn, span, detector=verdict.detector)
                for chat, verdict in self._verdicts
                for span in verdict.spans or ()
            ],
        )

    def report(self) -> RunReport:
        """Return the content of `report.json`, derived from the journals.

        Its tables are tuples of rows: `rows` (a chatbot under a detector), `comparisons`, `ledger`,
        `efficiency`, … `pandas.DataFrame(map(dict, run.report().rows))` makes a frame.

        Raises:
            UsageError: the journals contradict each other.
        """
        from hallulab.simulator.report.write import report_of

        return report_of(self._folder, self._journals)

    def _counting_verdicts(self) -> list[tuple[Conversation, Verdict]]:
        chats = {conversation.id: conversation for conversation in self._conversations}
        verdicts = self._journals.current(self._saved).verdicts
        pairs = [(chats[found.conversation], found) for found in verdicts if found.conversation in chats]
        return sorted(pairs, key=lambda pair: (_place(pair[0]), pair[1].turn, pair[1].detector))


def _place(conversation: Conversation) -> tuple[str, int, str, str]:
    """Return the sort key of a conversation."""
    return (conversation.persona, conversation.seed, conversation.chatbot, conversation.id)


def _frame(columns: Sequence[FrameColumn], rows: Sequence[RowSource]) -> pandas.DataFrame:
    import pandas

    return pandas.DataFrame(
        {
            column.name: pandas.Series([column.cell(row) for row in rows], dtype=column.dtype)
            for column in columns
        }
    )
