"""Shows on stderr how far a preparation is: a bar on a terminal, a line per step elsewhere."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from scenarios.steps import Listener, StepProgress, silent

if TYPE_CHECKING:
    from rich.progress import Progress, TaskID


@contextmanager
def shown_progress(quiet: bool = False) -> Iterator[Listener]:
    """A listener that shows what it is told: bars on a terminal, one line per step elsewhere."""
    if quiet:
        yield silent
    elif sys.stderr.isatty():
        with _bars() as bars:
            yield _Bars(bars)
    else:
        yield _Lines()


class _Lines:
    """One line on stderr whenever another step begins."""

    def __init__(self) -> None:
        self._step: str | None = None

    def __call__(self, progress: StepProgress) -> None:
        if progress.step != self._step:
            self._step = progress.step
            print(f"{progress.step} …", file=sys.stderr, flush=True)


class _Bars:
    """One bar for each step, the ones before it full."""

    def __init__(self, bars: Progress) -> None:
        self._bars = bars
        self._step: str | None = None
        self._task: TaskID | None = None

    def __call__(self, progress: StepProgress) -> None:
        if self._task is None or progress.step != self._step:
            self._finish()
            self._step = progress.step
            self._task = self._bars.add_task(progress.step, total=progress.total)
        self._bars.update(self._task, completed=progress.done, total=progress.total)

    def _finish(self) -> None:
        if self._task is not None:
            total = self._bars.tasks[self._task].total or 1
            self._bars.update(self._task, total=total, completed=total)


def _bars() -> Progress:
    from rich.console import Console
    from rich.progress import (
        BarColumn,
        Progress,
        TaskProgressColumn,
        TextColumn,
        TimeElapsedColumn,
        TimeRemainingColumn,
    )

    return Progress(
        TextColumn("{task.description}"),
        BarColumn(),
        TaskProgressColumn(),
        TimeElapsedColumn(),
        TextColumn("left"),
        TimeRemainingColumn(),
        console=Console(stderr=True),
    )
