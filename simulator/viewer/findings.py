"""The numbers of a run's page: those of its report, made anew when the run has grown."""

from __future__ import annotations

import threading
from concurrent.futures import Future
from dataclasses import dataclass

from hallulab.scenarios.errors import UsageError
from hallulab.simulator.records.folder import RunFolder
from hallulab.simulator.report.write import view_run
from hallulab.simulator.show.document import ShownDocument
from hallulab.simulator.viewer.runs import ShownRun, look_at_files

MOST = 2_000
"""Conversations up to which a report is made: it takes some seconds."""

WAIT_S = 1.0
"""Seconds that a page waits for a report; then it shows counts, and the report when it is there."""

_TOO_MANY = (
    "With more than {most:,} conversations, this page counts hallucinations alone. Intervals, tests and all "
    "else are in the report: `hallulab report {folder}`."
)

_READING = (
    "The index of this run is being built: {share:.0%} of its journals are read. This page and the list of "
    "conversations have what was read so far."
)
_MAKING = "The report of this run is being made. This page shows it when it is there."


@dataclass(frozen=True)
class RunFindings:
    """What is known of a run besides its counts."""

    view: ShownDocument | None
    """The report; None: there is none."""
    reason: str | None
    """Why there is none."""


@dataclass(frozen=True)
class _MadeFindings:
    """A report, or one that is being made."""

    state: tuple[tuple[int, int], ...]
    found: Future[RunFindings]


class Findings:
    """Makes the reports of runs, one at a time in the background, and keeps the last one of each."""

    def __init__(self) -> None:
        self._last: dict[str, _MadeFindings] = {}
        """The last one of each run, which may still be made."""
        self._ready: dict[str, RunFindings] = {}
        """The last one of each run that is ready."""
        self._starting, self._working = threading.Lock(), threading.Lock()

    def of(self, run: ShownRun) -> RunFindings:
        """Return what is known of a run; of a moment ago, if it takes longer than `WAIT_S` to know more."""
        if run.growth.is_working:
            return RunFindings(None, _READING.format(share=run.index.measure_progress()))
        if run.growth.count().conversations > MOST:
            return RunFindings(None, _TOO_MANY.format(most=MOST, folder=run.folder.path))
        key, state = str(run.folder.path), look_at_files(run.folder)
        with self._starting:
            last = self._last.get(key)
            if last is None or (last.state != state and last.found.done()):
                last = self._last[key] = _MadeFindings(state, Future())
                threading.Thread(target=self._make, args=(run.folder, last.found), daemon=True).start()
        try:
            self._ready[key] = last.found.result(WAIT_S)
        except TimeoutError:
            return self._ready.get(key, RunFindings(None, _MAKING))
        return self._ready[key]

    def is_making(self, run: ShownRun) -> bool:
        """Return whether a report of a run is being made."""
        last = self._last.get(str(run.folder.path))
        return last is not None and not last.found.done()

    def _make(self, folder: RunFolder, found: Future[RunFindings]) -> None:
        with self._working:
            try:
                found.set_result(_find(folder))
            except Exception as error:  # noqa: BLE001 - told to whoever asks for it
                found.set_exception(error)


def _find(folder: RunFolder) -> RunFindings:
    try:
        return RunFindings(view_run(folder).of("page"), None)
    except UsageError as error:
        return RunFindings(None, str(error))
