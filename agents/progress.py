"""Show progress on stderr with the time left: bars on a terminal, lines elsewhere."""

from __future__ import annotations

import math
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from datetime import timedelta
from typing import Any

from rich.console import Console, RenderableType
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    ProgressColumn,
    Task,
    TaskID,
    TaskProgressColumn,
    TimeElapsedColumn,
)
from rich.text import Text

from hallulab.agents.machine.cache import Listener, StepProgress, silent
from hallulab.scenarios.text.wording import render_one_line

LINE_EVERY = 30.0
"""Seconds between two reports in a log."""
FIRST_LINE_AFTER = 1.5
"""Seconds after which a log gets the first line of a phase."""
BEAT = 0.5
"""Seconds between two looks at whether a log gets a line, for phases in which nothing is completed."""
_ROUGH_BELOW = 0.1
"""Share that is done below which the time left is a range."""
_ROUGH_FACTOR = 3
_LOG_WIDTH = 120


class TimeLeft(ProgressColumn):
    """The time left at the rate since the first completed unit, so that no start-up counts.

    Until a tenth is done it is a range, up to three times that. The first units come in a burst, as many as
    requests are under way, and later turns have longer histories: the rate is the best that can be hoped for.

    The library's own column looks back 30 seconds, in which a slow model may finish nothing. It also forgets
    the speed when a total changes, which happens whenever a conversation ends early.
    """

    def render(self, task: Task) -> Text:
        """See `ProgressColumn`."""
        return Text(_tell_left(task), style="progress.remaining")


def _tell_left(task: Task) -> str:
    """Return the time left in words; empty: nothing is left, or there is no rate yet."""
    first: tuple[float, float] | None = task.fields.get("first")
    if task.total is None or first is None or task.finished:
        return ""
    began, units = first
    if task.completed <= units:
        return ""
    left = (task.get_time() - began) * (task.total - task.completed) / (task.completed - units)
    if task.completed >= _ROUGH_BELOW * task.total:
        return f"left {timedelta(seconds=round(left))}"
    most = _ROUGH_FACTOR * left
    unit, seconds = ("s", 1) if most < 120 else ("min", 60) if most < 7200 else ("h", 3600)
    return f"left {math.floor(left / seconds)} to {math.ceil(most / seconds)} {unit}"


class _WhereCounted(ProgressColumn):
    """How much is done, for tasks in which something is counted."""

    def __init__(self, inner: ProgressColumn) -> None:
        super().__init__()
        self._inner = inner

    def render(self, task: Task) -> RenderableType:
        """See `ProgressColumn`."""
        return Text() if task.total is None and not task.completed else self._inner.render(task)


class _Description(ProgressColumn):
    """A task's name. Unlike `TextColumn`, it does not read markup, because names come from files."""

    def render(self, task: Task) -> Text:
        """See `ProgressColumn`."""
        return Text(render_one_line(task.description))


class TimedProgress(Progress):
    """Progress that notes when each task's first unit was completed, for `TimeLeft`."""

    def update(self, task_id: TaskID, *args: Any, **values: Any) -> None:
        """See `Progress.update`."""
        super().update(task_id, *args, **values)
        self._note_first(task_id)

    def advance(self, task_id: TaskID, *args: Any, **values: Any) -> None:
        """See `Progress.advance`."""
        super().advance(task_id, *args, **values)
        self._note_first(task_id)

    def _note_first(self, task_id: TaskID) -> None:
        with self._lock:
            task = self._tasks[task_id]
            if task.completed:
                task.fields.setdefault("first", (self.get_time(), task.completed))


class LoggedProgress(TimedProgress):
    """Progress for a log: prints a task soon after it begins, and all of them at the end.

    In between, the unfinished ones are printed every `LINE_EVERY` seconds. Work that takes less than
    `FIRST_LINE_AFTER` seconds prints nothing.

    Args:
        console: where to print.
        get_time: the clock, in seconds; by default the console's.
    """

    def __init__(
        self, *columns: ProgressColumn, console: Console, get_time: Callable[[], float] | None = None
    ) -> None:
        super().__init__(*columns, console=console, get_time=get_time, disable=True)
        self._last = self.get_time()
        self._printed = False
        self._stopping = threading.Event()
        self._beating: threading.Thread | None = None

    def start(self) -> None:
        """See `Progress.start`."""
        super().start()
        self._beating = threading.Thread(target=self._beat, name="progress", daemon=True)
        self._beating.start()

    def update(self, task_id: TaskID, *args: Any, **values: Any) -> None:
        """See `Progress.update`."""
        super().update(task_id, *args, **values)
        self.print_when_due()

    def advance(self, task_id: TaskID, *args: Any, **values: Any) -> None:
        """See `Progress.advance`."""
        super().advance(task_id, *args, **values)
        self.print_when_due()

    def stop(self) -> None:
        """See `Progress.stop`."""
        super().stop()
        self._stopping.set()
        if self._beating is not None:
            self._beating.join()
        if self._printed:
            self._print([task for task in self.tasks if task.visible])

    def print_when_due(self) -> None:
        """Print the unfinished tasks if one has had no line yet for too long, or all of them."""
        with self._lock:
            unfinished = [task for task in self.tasks if task.visible and not task.finished]
            new = any(
                not task.fields.get("said") and (task.elapsed or 0) >= FIRST_LINE_AFTER for task in unfinished
            )
            if new or (unfinished and self.get_time() - self._last >= LINE_EVERY):
                self._print(unfinished)

    def _beat(self) -> None:
        while not self._stopping.wait(BEAT):
            self.print_when_due()

    def _print(self, tasks: Sequence[Task]) -> None:
        self._last = self.get_time()
        self._printed = True
        for task in tasks:
            task.fields["said"] = True
        self.console.print(self.make_tasks_table(tasks))


def bars(quiet: bool, amount: ProgressColumn | None = None, transient: bool = False) -> Progress:
    """Make bars on stderr with the time left; lines if stderr is no terminal; nothing if `quiet`.

    Args:
        amount: the column for how much is done; by default as `3/8`.
        transient: whether a terminal forgets them when they end.
    """
    what = _Description()
    numbers = (_WhereCounted(amount or MofNCompleteColumn()), TimeElapsedColumn(), TimeLeft())
    if quiet or sys.stderr.isatty():
        console = Console(stderr=True)
        return TimedProgress(what, BarColumn(), *numbers, console=console, disable=quiet, transient=transient)
    return LoggedProgress(what, *numbers, console=Console(stderr=True, width=_LOG_WIDTH))


@contextmanager
def showing(phase: str, quiet: bool = False) -> Iterator[None]:
    """Show a phase of which nobody knows how long it takes, with the time since it began.

    No other progress may be shown meanwhile: two displays would draw over each other on a terminal.
    """
    with bars(quiet, transient=True) as shown:
        task = shown.add_task(phase, total=None)
        yield
        shown.update(task, total=1, completed=1)


@contextmanager
def shown_progress(quiet: bool = False) -> Iterator[Listener]:
    """Yield a listener that shows progress: bars on a terminal, elsewhere a line when a step begins."""
    if quiet:
        yield silent
        return
    with bars(quiet, TaskProgressColumn()) as shown:
        yield _Steps(shown, shown.add_task("getting ready", total=None), announced=not sys.stderr.isatty())


class _Steps:
    """A listener with one task for each step; what a thread did before is shown as complete."""

    def __init__(self, shown: Progress, before: TaskID, announced: bool) -> None:
        self._shown = shown
        self._before = before
        """The task that is shown until the first step."""
        self._announced = announced
        self._steps: dict[int, tuple[str, TaskID]] = {}
        """Thread → the step that it is at, and its task."""

    def __call__(self, progress: StepProgress) -> None:
        thread = threading.get_ident()
        step, task = self._steps.get(thread, (None, None))
        if task is None or progress.step != step:
            self._shown.update(self._before, total=1, completed=1, visible=False)
            if task is not None:
                total = self._shown.tasks[task].total or 1
                self._shown.update(task, total=total, completed=total)
            task = self._shown.add_task(progress.step, total=progress.total, said=self._announced)
            self._steps[thread] = progress.step, task
            if self._announced:
                print(render_one_line(f"{progress.step} …"), file=sys.stderr, flush=True)
        self._shown.update(task, completed=progress.done, total=progress.total)
