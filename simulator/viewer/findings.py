"""The numbers of a run's page: those of its report, made anew when the run has grown."""

from __future__ import annotations

import threading
from dataclasses import dataclass

from hallulab.scenarios.errors import UsageError
from hallulab.simulator.report.page import PageView
from hallulab.simulator.report.write import view_run
from hallulab.simulator.runs.folder import RunFolder

MOST = 2_000
"""Conversations up to which a report is made while somebody waits: it takes a second or two."""

_TOO_MANY = (
    "With more than {most:,} conversations, this page counts hallucinations alone. Intervals, tests and all "
    "else are in the report: `hallulab report {folder}`."
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
        self._kept: dict[str, tuple[tuple[int, ...], RunFindings]] = {}
        self._working = threading.Lock()

    def of(self, folder: RunFolder, conversations: int) -> RunFindings:
        """Return what is known of a run.

        Args:
            folder: the run.
            conversations: how many it has.
        """
        if conversations > MOST:
            return RunFindings(None, _TOO_MANY.format(most=MOST, folder=folder.path))
        files = (folder.conversations, folder.verdicts, folder.experiment, folder.annotations)
        state = tuple(file.stat().st_size if file.is_file() else -1 for file in files)
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
