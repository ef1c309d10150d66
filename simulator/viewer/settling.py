"""The page on which one of several annotators' labels of a turn, or new ones, are made to count."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote

from hallulab.scenarios.datasets.annotations import AnnotationLine, Quotation, TurnPlace, find_spans
from hallulab.scenarios.transcript import Span, Turn
from hallulab.simulator.annotate.desk import Desk
from hallulab.simulator.annotate.marks import FlagMark, sum_up
from hallulab.simulator.metrics.annotations import Conflict, list_conflicts
from hallulab.simulator.report.reader import cut_segments
from hallulab.simulator.viewer.progress import read_labels
from hallulab.simulator.viewer.runs import ShownRun


@dataclass(frozen=True)
class LabelLane:
    """A reply as one annotator labelled it."""

    annotator: str
    pieces: tuple[tuple[str, bool], ...]
    """The reply, cut where a place begins or ends, and whether a piece is in one."""
    spans: tuple[Quotation, ...]


def show_lanes(turn: Turn, labels: Mapping[str, AnnotationLine]) -> list[LabelLane]:
    """Return a lane for each annotator of a turn."""
    return [_show_lane(turn.reply, line) for line in labels.values()]


def _show_lane(reply: str, line: AnnotationLine) -> LabelLane:
    spans = [
        Span(start=found.start, end=found.end, text=reply[found.start : found.end])
        for found in find_spans(reply, line, "annotations.jsonl")
    ]
    pieces = tuple((text, bool(covering)) for text, covering in cut_segments(reply, spans))
    return LabelLane(line.annotator, pieces, line.spans)


def find_conflicts(run: ShownRun, replies: Mapping[TurnPlace, str]) -> list[Conflict]:
    """Return the turns of a run on which annotators differ.

    Raises:
        UsageError: a line is wrong.
    """
    return list_conflicts(read_labels(run.folder, replies).turns)


def describe_decision(desk: Desk, marks: Sequence[FlagMark], place: TurnPlace) -> dict[str, Any]:
    """Return what was said to settle a turn, and the line that came of it, in the form of a labelled turn.

    Args:
        desk: the adjudicator's.
        marks: the adjudicator's, that were not taken back.
        place: the turn.
    """
    standing = sum_up(mark for mark in marks if mark.place == place and mark.adjudicates)
    line = desk.read_decisions().get(place)
    return {
        "turn": place[1],
        "flags": [],
        "missed": [mark.text for mark in standing.missed],
        "line": None if line is None else line.model_dump(mode="json", include={"spans", "unknown"}),
        "by": None if line is None else line.annotator,
    }


def describe_next(
    run: ShownRun, conflicts: Sequence[Conflict], guideline: str | None, here: TurnPlace
) -> dict[str, Any]:
    """Return how many other conflicts under a guideline are open, and where the first is."""
    waiting = [
        one.place
        for one in conflicts
        if one.decision is None and one.guideline == guideline and one.place != here
    ]
    return {"left": len(waiting), "address": address_conflict(run, waiting[0]) if waiting else None}


def address_conflict(run: ShownRun, place: TurnPlace) -> str:
    """Return the address of the page on which a turn is settled."""
    return f"/runs/{run.id}/settle/{quote(place[0], safe='')}/{place[1]}"
