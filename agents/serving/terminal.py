"""Show the progress of a preparation on stderr: a bar for each step on a terminal, lines elsewhere."""

from __future__ import annotations

import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager

from rich.progress import Progress, TaskID, TaskProgressColumn

from hallulab.agents.machine.progress import bars
from hallulab.agents.machine.progress_events import Listener, StepProgress, silent
from hallulab.scenarios.text.wording import render_one_line


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
            self._finish(task)
            task = self._shown.add_task(progress.step, total=progress.total)
            self._steps[thread] = progress.step, task
            if self._announced:
                print(render_one_line(f"{progress.step} …"), file=sys.stderr, flush=True)
        self._shown.update(task, completed=progress.done, total=progress.total)

    def _finish(self, task: TaskID | None) -> None:
        if task is not None:
            total = self._shown.tasks[task].total or 1
            self._shown.update(task, total=total, completed=total)
