"""Numbers that take seconds, kept until a run changes: its report, its corrected numbers, and comparisons."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Mapping, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, replace
from shlex import join, quote

from hallulab.scenarios.datasets.annotations import (
    AnnotatedTurns,
    TurnPlace,
    leave_out_unknown,
    locate_annotations,
    read_annotations,
)
from hallulab.scenarios.errors import UsageError
from hallulab.simulator.compare.runs import RunsCompared, compare_runs
from hallulab.simulator.compare.summary import RunSummary, read_summary
from hallulab.simulator.compare.texts import add_texts
from hallulab.simulator.metrics.annotations import Annotations, count_annotations
from hallulab.simulator.metrics.corrections import UNKNOWN, Correction, compute_corrections
from hallulab.simulator.metrics.hallucinations import index_by_detector
from hallulab.simulator.metrics.judged_turns import JudgedTurn, collect_placed_turns, sum_judged_turns
from hallulab.simulator.records.folder import RunFolder
from hallulab.simulator.report.facts import derive_detector_errors, order_names
from hallulab.simulator.report.write import view_run
from hallulab.simulator.show.document import ShownDocument
from hallulab.simulator.statistics.prevalence import DetectorErrors
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
class KnownReport:
    """The report of a run, or why there is none."""

    document: ShownDocument | None
    reason: str | None
    is_late: bool = False
    """True if a newer one is being made."""


@dataclass(frozen=True)
class _MadeReport:
    """A report, or one that is being made."""

    state: tuple[tuple[int, int], ...]
    found: Future[KnownReport]


class RunReports:
    """Makes the reports of runs, one at a time in the background, and keeps the last one of each."""

    def __init__(self) -> None:
        self._last: dict[str, _MadeReport] = {}
        """The last one of each run, which may still be made."""
        self._ready: dict[str, KnownReport] = {}
        """The last one of each run that is ready."""
        self._starting, self._working = threading.Lock(), threading.Lock()

    def find(self, run: ShownRun) -> KnownReport:
        """Return what is known of a run; of a moment ago, if it takes longer than `WAIT_S` to know more."""
        if run.updater.is_working:
            return KnownReport(None, _READING.format(share=run.index.measure_progress()))
        if run.updater.count().conversations > MOST:
            return KnownReport(None, _TOO_MANY.format(most=MOST, folder=run.folder.path))
        key, state = str(run.folder.path), look_at_files(run.folder)
        with self._starting:
            last = self._last.get(key)
            if last is None or (last.state != state and last.found.done()):
                last = self._last[key] = _MadeReport(state, Future())
                threading.Thread(target=self._make, args=(run, last.found), daemon=True).start()
        try:
            self._ready[key] = last.found.result(WAIT_S)
        except TimeoutError:
            return replace(self._ready.get(key, KnownReport(None, _MAKING)), is_late=True)
        return self._ready[key]

    def is_making(self, run: ShownRun) -> bool:
        """Return whether a report of a run is being made."""
        last = self._last.get(str(run.folder.path))
        return last is not None and not last.found.done()

    def _make(self, run: ShownRun, found: Future[KnownReport]) -> None:
        def address(conversation: str, turn: int) -> str:
            return f"{run.address_chat(conversation)}#turn-{turn}"

        with self._working:
            try:
                found.set_result(KnownReport(view_run(run.folder, address).of("page"), None))
            except UsageError as error:
                found.set_result(KnownReport(None, str(error)))
            except Exception as error:  # noqa: BLE001 - raised where it is asked for
                found.set_exception(error)


_NOTHING = Annotations()
"""Labels, before they are looked up."""


@dataclass(frozen=True)
class _JudgedRun:
    """The turns of a run that detectors scored."""

    state: tuple[int, ...]
    """Sizes of the journals that they were read from."""
    chatbots: tuple[str, ...]
    """Names, in the report's order."""
    turns: Mapping[str, Mapping[TurnPlace, JudgedTurn]]
    """Of each detector, in the report's order."""
    mistakes: Mapping[str, DetectorErrors]
    """Each detector's mistakes, as far as a calibration knows them."""
    replies: Mapping[TurnPlace, str]


@dataclass(frozen=True)
class Progress:
    """The numbers of a run by one detector."""

    detector: str
    detectors: tuple[str, ...]
    rows: tuple[Correction, ...]
    """A row for each chatbot, then one for all."""


class CorrectedNumbers:
    """Makes the corrected numbers of runs. The turns of the run that was asked for last are kept."""

    def __init__(self) -> None:
        self._kept: tuple[RunFolder, _JudgedRun] | None = None
        self._working = threading.Lock()

    def compute(self, folder: RunFolder, detector: str | None, conversations: int) -> Progress:
        """Return the numbers of a run.

        Args:
            detector: whose numbers are corrected; else the first detector that scored turns.

        Raises:
            UsageError: the run is too big, no detector scored a turn, or a file is wrong.
        """
        if conversations > MOST:
            raise UsageError(
                f"With more than {MOST:,} conversations, the corrected numbers are in the report: "
                f"`hallulab report {quote(str(folder.path))}`."
            )
        with self._working:
            judged = self._judge(folder)
        if not judged.turns:
            raise UsageError("No detector scored a turn of this run, so there is no number to correct.")
        name = next((one for one in judged.turns if one == detector), next(iter(judged.turns)))
        looked = count_annotations(read_labels(folder, judged.replies).turns)
        # One depth for all: the numbers of each depth are the report's business.
        turns = [
            replace(turn, depth=0, annotated=looked.counts.get(place), draw=looked.drawn.get(place))
            for place, turn in judged.turns[name].items()
        ]
        rows = compute_corrections(
            sum_judged_turns(turns), judged.chatbots, judged.mistakes.get(name), UNKNOWN
        )
        whole = tuple(row for row in rows if row.depth is None)
        return Progress(name, tuple(judged.turns), whole)

    def _judge(self, folder: RunFolder) -> _JudgedRun:
        files = (folder.conversations, folder.verdicts, folder.experiment)
        state = tuple(file.stat().st_size if file.is_file() else -1 for file in files)
        if self._kept is not None and self._kept[0].path == folder.path and self._kept[1].state == state:
            return self._kept[1]
        found = _read(folder, state)
        self._kept = folder, found
        return found


def read_labels(folder: RunFolder, replies: Mapping[TurnPlace, str]) -> AnnotatedTurns:
    """Return what annotators found in a run, as `read_annotated_turns` does, from replies that are at hand.

    Raises:
        UsageError: a line is wrong.
    """
    path = folder.annotations
    lines = leave_out_unknown(read_annotations(path)) if path.exists() else []
    return locate_annotations(path, lines, replies, folder.find_held)


def _read(folder: RunFolder, state: tuple[int, ...]) -> _JudgedRun:
    saved = folder.read_experiment()
    journals = folder.read_journals().current(saved)
    named = [bot.name for bot in saved.experiment.chatbots] if saved else []
    found: dict[str, dict[TurnPlace, JudgedTurn]] = {}
    replies: dict[TurnPlace, str] = {}
    for conversation, verdicts in journals.judged():
        replies.update(((conversation.id, turn.index), turn.reply) for turn in conversation.turns)
        for detector, own in index_by_detector(verdicts).items():
            found.setdefault(detector, {}).update(collect_placed_turns(conversation, own, _NOTHING))
    order = order_names(list(saved.detectors) if saved else [], found)
    return _JudgedRun(
        state,
        order_names(named, (head.chatbot for head in journals.heads)),
        {name: found[name] for name in order if found.get(name)},
        derive_detector_errors({(key.detector, key.version) for key in journals.keys}),
        replies,
    )


KEPT = 8
"""Comparisons, and summaries of runs, that are kept."""

State = tuple[tuple[str, tuple[tuple[int, int], ...]], ...]
"""Folders, with sizes and times of their files."""


@dataclass(frozen=True)
class KnownComparison:
    """A comparison of runs with a reference, or why there is none."""

    compared: RunsCompared | None
    reason: str | None


class RunComparisons:
    """Compares runs, one comparison at a time, and keeps the last ones."""

    def __init__(self) -> None:
        self._kept: OrderedDict[State, KnownComparison] = OrderedDict()
        self._summaries: OrderedDict[State, RunSummary] = OrderedDict()
        self._working = threading.Lock()

    def compare(self, runs: Sequence[ShownRun]) -> KnownComparison:
        """Compare runs with the first of them."""
        if any(run.updater.is_working for run in runs):
            return KnownComparison(None, "A run is being read for the first time. Load this page again soon.")
        large = [run for run in runs if run.updater.count().conversations > MOST]
        if large:
            folders = join(str(run.folder.path) for run in runs)
            return KnownComparison(
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

    def _compare(self, runs: Sequence[ShownRun]) -> KnownComparison:
        try:
            compared = compare_runs([self._summarize(run) for run in runs])
            return KnownComparison(add_texts(compared, [run.folder for run in runs]), None)
        except UsageError as error:
            return KnownComparison(None, str(error))

    def _summarize(self, run: ShownRun) -> RunSummary:
        state = (_look(run),)
        if state not in self._summaries:
            self._summaries[state] = read_summary(run.folder.path)
            _drop_oldest(self._summaries)
        return self._summaries[state]


def _look(run: ShownRun) -> tuple[str, tuple[tuple[int, int], ...]]:
    return str(run.folder.path), look_at_files(run.folder)


def _drop_oldest(kept: OrderedDict[State, KnownComparison] | OrderedDict[State, RunSummary]) -> None:
    while len(kept) > KEPT:
        kept.popitem(last=False)
