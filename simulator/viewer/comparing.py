"""Runs beside a reference for the viewer: what `hallulab compare` says, made anew when a run has changed."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass

from hallulab.scenarios.errors import UsageError
from hallulab.simulator.compare.runs import RunsCompared, compare_runs
from hallulab.simulator.compare.summary import RunSummary, read_summary
from hallulab.simulator.compare.texts import add_texts
from hallulab.simulator.viewer.findings import MOST
from hallulab.simulator.viewer.runs import ShownRun, look_at_files

KEPT = 8
"""Comparisons, and summaries of runs, that are kept."""

State = tuple[tuple[str, tuple[tuple[int, int], ...]], ...]
"""Folders, and what tells whether their files have changed."""


@dataclass(frozen=True)
class KeptComparison:
    """What is known of runs beside a reference."""

    compared: RunsCompared | None
    """It; None: there is none."""
    reason: str | None
    """Why there is none."""


class KeptComparisons:
    """Compares runs, one comparison at a time, and keeps the last ones."""

    def __init__(self) -> None:
        self._kept: OrderedDict[State, KeptComparison] = OrderedDict()
        self._summaries: OrderedDict[State, RunSummary] = OrderedDict()
        self._working = threading.Lock()

    def of(self, runs: Sequence[ShownRun]) -> KeptComparison:
        """Compare runs.

        Args:
            runs: them, the reference first.
        """
        if any(run.growth.is_working for run in runs):
            return KeptComparison(None, "A run is being read for the first time. Load this page again soon.")
        large = [run for run in runs if run.growth.count().conversations > MOST]
        if large:
            folders = " ".join(str(run.folder.path) for run in runs)
            return KeptComparison(
                None,
                f"{large[0].name} has more than {MOST:,} conversations, which takes too long while somebody "
                f"waits. `hallulab compare {folders} --html FILE` writes the page.",
            )
        state = tuple(map(_look, runs))
        with self._working:
            if state not in self._kept:
                self._kept[state] = self._compare(runs)
                _drop_oldest(self._kept)
            self._kept.move_to_end(state)
            return self._kept[state]

    def _compare(self, runs: Sequence[ShownRun]) -> KeptComparison:
        try:
            compared = compare_runs([self._summarize(run) for run in runs])
            return KeptComparison(add_texts(compared, [run.folder for run in runs]), None)
        except UsageError as error:
            return KeptComparison(None, str(error))

    def _summarize(self, run: ShownRun) -> RunSummary:
        state = (_look(run),)
        if state not in self._summaries:
            self._summaries[state] = read_summary(run.folder.path)
            _drop_oldest(self._summaries)
        return self._summaries[state]


def _look(run: ShownRun) -> tuple[str, tuple[tuple[int, int], ...]]:
    return str(run.folder.path), look_at_files(run.folder)


def _drop_oldest(kept: OrderedDict[State, KeptComparison] | OrderedDict[State, RunSummary]) -> None:
    while len(kept) > KEPT:
        kept.popitem(last=False)
