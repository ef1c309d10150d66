"""The numbers of a run's page: those of its report, made anew when the run has grown."""

from __future__ import annotations

import threading
from dataclasses import dataclass

from hallulab.scenarios.errors import UsageError
from hallulab.simulator.report.page import PageView
from hallulab.simulator.report.write import view_run
from hallulab.simulator.runs.folder import RunFolder
from hallulab.simulator.viewer.runs import ShownRun, look_at_files

MOST = 2_000
"""Conversations up to which a report is made while somebody waits: it takes a second or two."""

_TOO_MANY = (
    "With more than {most:,} conversations, this page counts hallucinations alone. Intervals, tests and all "
    "else are in the report: `hallulab report {folder}`."
)

_READING = (
    "The index of this run is being built: {share:.0%} of its journals are read. This page and the list of "
    "conversations have what was read so far."
)


@dataclass(frozen=True)
class RunFindings:
    """What is known of a run besides its counts."""

    view: PageView | None
    """The report; None: there is none."""
    reason: str | None
    """Why there is none."""


class Findings:
    """Makes the reports of runs, one at a time, and keeps the last one of each."""

    def __init__(self) -> None:
        self._kept: dict[str, tuple[tuple[tuple[int, int], ...], RunFindings]] = {}
        self._working = threading.Lock()

    def of(self, run: ShownRun) -> RunFindings:
        """Return what is known of a run."""
        if run.growth.is_working:
            return RunFindings(None, _READING.format(share=run.index.measure_progress()))
        folder, conversations = run.folder, run.growth.count().conversations
        if conversations > MOST:
            return RunFindings(None, _TOO_MANY.format(most=MOST, folder=folder.path))
        state = look_at_files(folder)
        with self._working:
            held = self._kept.get(str(folder.path))
            if held is None or held[0] != state:
                held = state, _find(folder)
                self._kept[str(folder.path)] = held
        return held[1]


def _find(folder: RunFolder) -> RunFindings:
    try:
        return RunFindings(view_run(folder), None)
    except UsageError as error:
        return RunFindings(None, str(error))
