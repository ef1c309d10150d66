"""Show the progress of a preparation on stderr: a bar for each step on a terminal, lines elsewhere."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager

from rich.progress import Progress, TaskID, TaskProgressColumn

from agents.machine.progress import bars
from agents.machine.progress_events import Listener, StepProgress, silent
from scenarios.text.wording import one_line


@contextmanager
def shown_progress(quiet: bool = False) -> Iterator[Listener]:
    """Yield a listener that shows progress: bars on a terminal, elsewhere a line when a step begins."""
    if quiet:
        yield silent
        return
    with bars(quiet, TaskProgressColumn()) as shown:
        yield _Steps(shown, announced=not sys.stderr.isatty())


class _Steps:
    """A listener with one task for each step; earlier tasks are shown as complete."""

    def __init__(self, shown: Progress, announced: bool) -> None:
        self._shown = shown
        self._announced = announced
        self._step: str | None = None
        self._task: TaskID | None = None

    def __call__(self, progress: StepProgress) -> None:
        if self._task is None or progress.step != self._step:
            self._finish()
            self._step = progress.step
            self._task = self._shown.add_task(progress.step, total=progress.total)
            if self._announced:
                print(one_line(f"{progress.step} …"), file=sys.stderr, flush=True)
        self._shown.update(self._task, completed=progress.done, total=progress.total)

    def _finish(self) -> None:
        if self._task is not None:
            total = self._shown.tasks[self._task].total or 1
            self._shown.update(self._task, total=total, completed=total)
