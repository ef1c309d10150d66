"""A run folder as pandas frames, with the columns of `hallulab.simulator.report.frames`."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, overload

from hallulab.scenarios.arguments import check_arguments
from hallulab.scenarios.files.atomic import write_atomically
from hallulab.scenarios.text.wording import choose_noun, format_count, render_one_line
from hallulab.scenarios.transcript import Conversation, Verdict
from hallulab.simulator.records.folder import RunFolder
from hallulab.simulator.report.frames import SPANS as SPANS
from hallulab.simulator.report.frames import TURNS as TURNS
from hallulab.simulator.report.frames import VERDICTS as VERDICTS
from hallulab.simulator.report.frames import FrameColumn as FrameColumn
from hallulab.simulator.report.frames import (
    RowSource,
    list_span_sources,
    list_turn_sources,
    list_verdict_sources,
)

if TYPE_CHECKING:
    import pandas
    from matplotlib.axes import Axes

    from hallulab.simulator.metrics.run_report import RunReport


class Run:
    """The run in a folder, as it was when it was opened. Nothing is written there.

    Rows are in the order of persona, seed, chatbot and turn, then of detectors' names. Columns are those of
    `hallulab.results`, even without rows. Verdicts of older versions of a detector and earlier tries of a
    conversation are left out, as in the report.

    >>> run = Run("runs/demo")
    >>> run
    <Run 'runs/demo': 1 conversation, 1 reply; metarag scored 1 of 1, flagged 1>
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

    Raises:
        UsageError: it is no run folder, or a file of it is damaged; names file, line and field.
    """

    @check_arguments
    def __init__(self, path: str | Path) -> None:
        self._folder = RunFolder(Path(path))
        self._folder.require()
        self._journals = self._folder.read_journals()
        self._saved = self._folder.read_experiment()
        self._conversations = sorted(self._journals.conversations, key=_place)
        chats = {conversation.id: conversation for conversation in self._conversations}
        counting = self._journals.current(self._saved).verdicts
        pairs = [(chats[found.conversation], found) for found in counting if found.conversation in chats]
        self._verdicts = sorted(pairs, key=lambda pair: (_place(pair[0]), pair[1].turn, pair[1].detector))

    def __fspath__(self) -> str:
        return str(self.path)

    def __repr__(self) -> str:
        return f"<Run {str(self.path)!r}: {self._describe()}>"

    def _repr_html_(self) -> str:
        """Return the results for a cell of a notebook: what was found, and a table with coverage."""
        from hallulab.simulator.report.notebook import render_cell

        return render_cell(self.report(), f"{self.path}: {self._describe()}")

    def _describe(self) -> str:
        """Return sizes, and of each detector the replies that it scored and flagged, in a line."""
        turns = sum(len(chat.turns) for chat in self._conversations)
        replies = choose_noun(turns, "reply", "replies")
        sizes = f"{format_count(len(self._conversations), 'conversation')}, {turns} {replies}"
        outcomes: dict[str, list[Verdict]] = {}
        for _, verdict in self._verdicts:
            outcomes.setdefault(verdict.detector, []).append(verdict)
        judged = (
            f"{render_one_line(name)} scored {sum(one.outcome == 'scored' for one in found)} of {turns}, "
            f"flagged {sum(one.flagged is True for one in found)}"
            for name, found in sorted(outcomes.items())
        )
        return "; ".join((sizes, *judged)) if outcomes else f"{sizes}, not judged"

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
        sources = (source for chat in self._conversations for source in list_turn_sources(chat))
        return _frame(TURNS, sources)

    def verdicts(self) -> pandas.DataFrame:
        """Return the verdicts, a row for each turn and detector; columns: `hallulab.results.VERDICTS`."""
        sources = (one for chat, found in self._verdicts for one in list_verdict_sources(chat, [found]))
        return _frame(VERDICTS, sources)

    def spans(self) -> pandas.DataFrame:
        """Return the hallucinations that detectors found, a row each; columns: `hallulab.results.SPANS`.

        A flagged verdict without places has no row here.
        """
        sources = (one for chat, found in self._verdicts for one in list_span_sources(chat, [found]))
        return _frame(SPANS, sources)

    def report(self) -> RunReport:
        """Return the content of `report.json`, derived from the journals.

        Its tables are tuples of rows: `rows` (a chatbot under a detector), `comparisons`, `ledger`,
        `efficiency`, … `pandas.DataFrame(map(dict, run.report().rows))` makes a frame.

        Raises:
            UsageError: the journals contradict each other.
        """
        from hallulab.simulator.report.write import report_of

        return report_of(self._folder, self._journals)

    @overload
    def to_html(self, path: None = None) -> str: ...

    @overload
    def to_html(self, path: str | Path) -> None: ...

    @check_arguments
    def to_html(self, path: str | Path | None = None) -> str | None:
        """Return the page that `hallulab report` writes, or write it into the file `path`.

        Raises:
            UsageError: it has more than 500 conversations, whose pages only `hallulab report` writes, or the
                journals contradict each other.
            OperationalError: the file cannot be written.
        """
        from hallulab.simulator.report.write import render_run

        page = render_run(self._folder, self._journals)
        if path is None:
            return page
        write_atomically(Path(path), page)
        return None

    @check_arguments
    def plot(self, detector: str | None = None, ax: Axes | None = None) -> Axes:
        """Draw the hallucinations per turn of each chatbot with their 95% intervals, by matplotlib.

        Args:
            detector: the one whose verdicts are drawn; None: all, each in a colour.
            ax: the axes to draw into; None: those of a new figure.

        Raises:
            UsageError: it has not judged the run, or matplotlib is not installed.
        """
        from hallulab.simulator.report.notebook import plot_hallucinations

        return plot_hallucinations(self.report(), detector, ax)


def _place(conversation: Conversation) -> tuple[str, int, str, str]:
    """Return the sort key of a conversation."""
    return (conversation.persona, conversation.seed, conversation.chatbot, conversation.id)


def _frame(columns: Iterable[FrameColumn], sources: Iterable[RowSource]) -> pandas.DataFrame:
    import pandas

    rows = list(sources)
    return pandas.DataFrame(
        {
            column.name: pandas.Series([column.cell(row) for row in rows], dtype=column.dtype)
            for column in columns
        }
    )
