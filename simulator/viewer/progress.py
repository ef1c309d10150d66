"""The corrected numbers of a run while somebody labels it: those of its report, made anew at each key."""

from __future__ import annotations

import threading
from collections.abc import Mapping
from dataclasses import dataclass, replace

from hallulab.scenarios.datasets.annotations import (
    AnnotatedTurns,
    TurnPlace,
    leave_out_unknown,
    locate_annotations,
    read_annotations,
)
from hallulab.scenarios.errors import UsageError
from hallulab.simulator.metrics.annotations import Annotations, count_annotations
from hallulab.simulator.metrics.corrections import UNKNOWN, Correction, compute_corrections
from hallulab.simulator.metrics.hallucinations import index_by_detector
from hallulab.simulator.metrics.judged_turns import JudgedTurn, collect_placed_turns, sum_judged_turns
from hallulab.simulator.records.folder import RunFolder
from hallulab.simulator.report.facts import derive_detector_errors, order_names
from hallulab.simulator.statistics.prevalence import DetectorErrors
from hallulab.simulator.viewer.findings import MOST

_NOTHING = Annotations()
"""What annotators found, before it is looked up."""


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
    """All replies of the run."""


@dataclass(frozen=True)
class Progress:
    """The numbers of a run by one detector."""

    detector: str
    detectors: tuple[str, ...]
    rows: tuple[Correction, ...]
    """A row for each chatbot, then one for all."""


class ProgressKeeper:
    """Makes the corrected numbers of runs. The turns of the run that was asked for last are kept."""

    def __init__(self) -> None:
        self._kept: tuple[RunFolder, _JudgedRun] | None = None
        self._working = threading.Lock()

    def of(self, folder: RunFolder, detector: str | None, conversations: int) -> Progress:
        """Return the numbers of a run.

        Args:
            folder: the run.
            detector: whose numbers are corrected; else the first detector that scored turns.
            conversations: how many the run has.

        Raises:
            UsageError: the run is too big, no detector scored a turn, or a file is wrong.
        """
        if conversations > MOST:
            raise UsageError(
                f"With more than {MOST:,} conversations, the corrected numbers are in the report: "
                f"`hallulab report {folder.path}`."
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
