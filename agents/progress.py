"""Show progress on stderr with the time left: bars on a terminal, lines elsewhere."""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from datetime import timedelta
from typing import Any

from rich.console import Console
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    ProgressColumn,
    Task,
    TaskID,
    TaskProgressColumn,
    TextColumn,
    TimeElapsedColumn,
)
from rich.text import Text

from hallulab.agents.machine.cache import Listener, StepProgress, silent
from hallulab.scenarios.text.wording import render_one_line

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


@contextmanager
def shown_progress(quiet: bool = False) -> Iterator[Listener]:
    """Yield a listener that shows progress: bars on a terminal, elsewhere a line when a step begins."""
    if quiet:
        yield silent
        return
    with bars(quiet, TaskProgressColumn()) as shown:
        yield _Steps(shown, announced=not sys.stderr.isatty())


class _Steps:
    """A listener with one task for each step; what a thread did before is shown as complete."""

    def __init__(self, shown: Progress, announced: bool) -> None:
        self._shown = shown
        self._announced = announced
        self._steps: dict[int, tuple[str, TaskID]] = {}
        """Thread → the step that it is at, and its task."""

    def __call__(self, progress: StepProgress) -> None:
        thread = threading.get_ident()
        step, task = self._steps.get(thread, (None, None))
        if task is None or progress.step != step:
            if task is not None:
                total = self._shown.tasks[task].total or 1
                self._shown.update(task, total=total, completed=total)
            task = self._shown.add_task(progress.step, total=progress.total)
            self._steps[thread] = progress.step, task
            if self._announced:
                print(render_one_line(f"{progress.step} …"), file=sys.stderr, flush=True)
        self._shown.update(task, completed=progress.done, total=progress.total)
