"""Requests of somebody who labels, and the labels of a turn by all annotators."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import quote

from pydantic import Field, model_validator

from hallulab.scenarios.datasets.annotations import (
    MODEL,
    NAMED,
    PERSON,
    AnnotationLine,
    Quotation,
    TurnPlace,
    find_spans,
    require_annotator,
)
from hallulab.scenarios.errors import UsageError
from hallulab.scenarios.transcript import Conversation, Count, Frozen, Span, Turn, Verdict
from hallulab.simulator.annotate.desk import Desk
from hallulab.simulator.annotate.marks import FlagMark, MarkKind, identify_flag, sum_up
from hallulab.simulator.metrics.annotations import Conflict, list_conflicts
from hallulab.simulator.report.reader import cut_segments
from hallulab.simulator.viewer.results import read_labels
from hallulab.simulator.viewer.runs import ShownRun

LONGEST_NAME = 60
"""Characters of an annotator's name."""


@dataclass(frozen=True)
class Labelling:
    """Who labels in a viewer, and by which guideline."""

    annotator: str = PERSON
    """Who, unless the page says another name."""
    guideline: Path | None = None
    """File with the guideline; None: that of the run's labels so far."""


ANYBODY = Labelling()
"""A person, by the run's guideline."""


class AskedKey(Frozen):
    """Fields of every request that writes."""

    annotator: str = ""
    """Name of the annotator, as the page has it."""


class Key(AskedKey):
    """The request of a pressed key."""

    conversation: str
    turn: Count
    kind: MarkKind
    flag: str | None = None
    """Which flag it is about, as the page that shows it calls it."""
    start: Count | None = None
    """First character of missed words, in the reply as it is shown."""
    end: Count | None = None
    """One past the last one."""
    text: str = Field("", max_length=100_000)
    severity: int | None = Field(None, ge=1, le=5)
    reason: str = Field("", max_length=10_000)
    adjudicate: bool = False
    """True to decide between the labels of annotators."""
    takes: str | None = None
    """Annotator whose labels are taken."""

    @model_validator(mode="after")
    def _require_kind(self) -> Key:
        if self.adjudicate and self.kind in ("right", "wrong", "unknown"):
            raise ValueError(f"`{self.kind}` does not settle a turn; leave it open instead")
        if self.kind == "take" and not self.adjudicate:
            raise ValueError("`take` needs `adjudicate`")
        return self


def name_annotator(text: str) -> str:
    """Return how labels call somebody who gives this name.

    >>> name_annotator("Asha")
    'person:Asha'

    Raises:
        UsageError: it is too long, or has characters that cannot be seen.
    """
    name = text.strip()
    if len(name) > LONGEST_NAME or not name.isprintable():
        raise UsageError(f"A name has at most {LONGEST_NAME} characters that can be seen.")
    full = name if name in ("", PERSON) or name.startswith((NAMED, MODEL)) else f"{NAMED}{name}"
    try:
        return require_annotator(full or PERSON)
    except ValueError as error:
        raise UsageError(f"{error}.") from error


def map_shown(reply: str) -> list[int]:
    r"""Return the place in a reply of each character that a browser has of it, and that of the end.

    Browsers make one line end of two characters, and drop NUL.

    >>> map_shown("a\r\nb")
    [0, 1, 3, 4]
    """
    pairs = zip(f" {reply}", reply, strict=False)
    found = [at for at, pair in enumerate(pairs) if pair != ("\r", "\n") and pair[1] != "\0"]
    return [*found, len(reply)]


def read_key(key: Key, found: tuple[Conversation, Sequence[Verdict]] | None) -> dict[str, Any]:
    """Return the fields of a mark: flags by their words, and places in the reply as it is stored.

    Raises:
        UsageError: the turn does not have that flag, or the reply has other words there.
    """
    if key.kind not in ("right", "wrong", "missed"):
        return {"kind": key.kind, **({"takes": key.takes} if key.kind == "take" else {})}
    chat, verdicts = found or (None, ())
    said: dict[str, Any] = {"kind": key.kind, "severity": key.severity, "reason": key.reason}
    if key.kind == "missed":
        reply = "".join(turn.reply for turn in chat.turns if turn.index == key.turn) if chat else ""
        places = map_shown(reply)
        if key.start is None or key.end is None or not key.start < key.end < len(places):
            raise UsageError("These words do not stand in the reply. Select some of it.")
        start, end = places[key.start], places[key.end]
        if key.text != "".join(reply[at] for at in places[key.start : key.end]).replace("\r", "\n"):
            raise UsageError("The reply has other words there. Load the page again.")
        return {**said, "start": start, "end": end, "text": reply[start:end]}
    spans = [
        (identify_flag(verdict.detector, span), span)
        for verdict in verdicts
        if verdict.turn == key.turn
        for span in verdict.spans or ()
    ]
    found_flag = next((one for one in spans if one[0].id == key.flag), None)
    if found_flag is None:
        raise UsageError("Load the page again: this turn does not have that flag any more.")
    flag, span = found_flag
    if key.kind == "right":
        rated = None if span.severity is None else min(5, max(1, round(span.severity)))
        said |= {"severity": key.severity or rated, "reason": key.reason or span.reason}
    return {**said, **flag._asdict()}


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


def describe_turn(
    marks: Sequence[FlagMark], verdicts: Sequence[Verdict], line: AnnotationLine | None
) -> dict[str, Any]:
    """Return what somebody said of a turn: of its flags, what was missed, and the line that came of it."""
    summed = sum_up(marks)
    flags = [
        {"flag": flag.id, "stands": flag.start is not None, "mark": None if mark is None else mark.kind}
        for verdict in verdicts
        for flag in [identify_flag(verdict.detector, span) for span in verdict.spans or ()]
        for mark in [summed.judged.get(flag)]
    ]
    return {
        "flags": flags,
        "missed": [mark.text for mark in summed.missed],
        "line": None if line is None else line.model_dump(mode="json", include={"spans", "unknown"}),
    }


def describe_decision(desk: Desk, marks: Sequence[FlagMark], place: TurnPlace) -> dict[str, Any]:
    """Return the decision on a turn as a labelled turn, by the adjudicator's marks that stand."""
    own = [mark for mark in marks if mark.place == place and mark.adjudicates]
    line = desk.read_decisions().get(place)
    by = None if line is None else line.annotator
    return {**describe_turn(own, (), line), "turn": place[1], "by": by}


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
