"""Progress on stderr with the time left: bars on a terminal, a line now and then elsewhere."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from datetime import timedelta
from types import TracebackType
from typing import Any, Self

from rich.console import Console
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    ProgressColumn,
    Task,
    TextColumn,
    TimeElapsedColumn,
)
from rich.text import Text

from hallulab.scenarios.text.wording import render_one_line
from hallulab.scenarios.transcript import Conversation, Turn, Verdict

LINE_EVERY = 30.0
"""Seconds between two reports in a log."""
_LOG_WIDTH = 120


class TimeLeft(ProgressColumn):
    """The time left at the average speed so far.

    The library's own column looks back 30 seconds, in which a slow model may finish nothing. It also forgets
    the speed when a total changes, which happens whenever a conversation ends early.
    """

    def render(self, task: Task) -> Text:
        """See `ProgressColumn`."""
        if not task.completed or task.total is None or task.elapsed is None:
            return Text("-:--:--", style="progress.remaining")
        left = task.elapsed * max(0.0, task.total - task.completed) / task.completed
        return Text(str(timedelta(seconds=round(left))), style="progress.remaining")


class _Description(ProgressColumn):
    """A task's name. Unlike `TextColumn`, it does not read markup, because names come from files."""

    def render(self, task: Task) -> Text:
        """See `ProgressColumn`."""
        return Text(render_one_line(task.description))


class LoggedProgress(Progress):
    """Progress for a log: prints unfinished tasks every `LINE_EVERY` seconds, and all of them at the end.

    Work that takes less than that prints nothing.

    Args:
        columns: the columns of a task.
        console: where to print.
        get_time: the clock, in seconds; by default the console's.
    """

    def __init__(
        self, *columns: ProgressColumn, console: Console, get_time: Callable[[], float] | None = None
    ) -> None:
        super().__init__(*columns, console=console, get_time=get_time, disable=True)
        self._last = self.get_time()
        self._printed = False

    def update(self, *args: Any, **values: Any) -> None:
        """See `Progress.update`."""
        super().update(*args, **values)
        self._print_when_due()

    def advance(self, *args: Any, **values: Any) -> None:
        """See `Progress.advance`."""
        super().advance(*args, **values)
        self._print_when_due()

    def stop(self) -> None:
        """See `Progress.stop`."""
        super().stop()
        if self._printed:
            self._print(self.tasks)

    def _print_when_due(self) -> None:
        unfinished = [task for task in self.tasks if not task.finished]
        if unfinished and self.get_time() - self._last >= LINE_EVERY:
            self._print(unfinished)

    def _print(self, tasks: Sequence[Task]) -> None:
        self._last = self.get_time()
        self._printed = True
        self.console.print(self.make_tasks_table(tasks))


def bars(quiet: bool, amount: ProgressColumn | None = None) -> Progress:
    """Make bars on stderr with the time left; lines if stderr is no terminal; nothing if `quiet`.

    Args:
        amount: the column for how much is done; by default as `3/8`.
    """
    what = _Description()
    numbers = (amount or MofNCompleteColumn(), TimeElapsedColumn(), TextColumn("left"), TimeLeft())
    if quiet or sys.stderr.isatty():
        return Progress(what, BarColumn(), *numbers, console=Console(stderr=True), disable=quiet)
    return LoggedProgress(what, *numbers, console=Console(stderr=True, width=_LOG_WIDTH))


class ProgressBars:
    """An `Observer` that draws bars. Totals shrink when conversations end early.

    Args:
        max_turns: turns a conversation can have at most.
        detectors: verdicts per turn.
        quiet: draw nothing.
    """

    def __init__(self, max_turns: int, detectors: int, quiet: bool) -> None:
        self._max_turns = max_turns
        self._detectors = detectors
        self._open_turns = 0
        self._expected_verdicts = 0
        self._given = 0
        self._bars = bars(quiet)
        self._turns = self._bars.add_task("simulating turns", total=0)
        self._verdicts = self._bars.add_task("judging turns   ", total=0)
        self._turns_done = 0
        self._turns_under_way = 0

    def __enter__(self) -> Self:
        self._bars.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._bars.stop()

    def expect(self, conversations: int, verdicts: int) -> None:
        """Expect so many more conversations and verdicts."""
        self._open_turns += conversations * self._max_turns
        self._expected_verdicts += verdicts
        self._draw()

    def turn_done(self, turn: Turn) -> None:
        """Count a simulated turn."""
        self._turns_done += 1
        self._turns_under_way += 1
        self._open_turns -= 1
        self._draw()

    def conversation_done(self, conversation: Conversation, verdicts: int) -> None:
        """Count an ended conversation: expect its verdicts, and no longer its unused turns."""
        self._open_turns = max(0, self._open_turns - (self._max_turns - len(conversation.turns)))
        self._turns_under_way -= len(conversation.turns)
        self._expected_verdicts += verdicts
        self._draw()

    def verdict_done(self, verdict: Verdict) -> None:
        """Count a judged turn."""
        self._given += 1
        self._draw()

    def _draw(self) -> None:
        turns = self._turns_done + self._open_turns
        unjudged = self._open_turns + self._turns_under_way
        verdicts = self._expected_verdicts + unjudged * self._detectors
        self._bars.update(self._turns, total=turns, completed=self._turns_done)
        self._bars.update(self._verdicts, total=max(verdicts, self._given), completed=self._given)
