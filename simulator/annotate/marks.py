"""Marks: the keys that annotators press in the viewer, and what these make of a turn.

A turn is annotated when each of its flags has a mark, or when the annotator says so. Its hallucinations are
then the flags that are marked right, and the places that the annotator added.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, NamedTuple

from pydantic import AwareDatetime, Field, model_validator

from hallulab.scenarios.datasets.annotations import PERSON, Quotation, TurnPlace, require_annotator
from hallulab.scenarios.datasets.loader import locate_quotations
from hallulab.scenarios.files.data_files import check_record
from hallulab.scenarios.files.json_text import digest, read_lines
from hallulab.scenarios.transcript import Count, Frozen, Span, Verdict

SCHEMA = "docs/viewer.md"

USUAL_SEVERITY = 3
"""Severity of a flag whose detector gives none."""

MarkKind = Literal["right", "wrong", "missed", "clean", "done", "unknown", "take", "undo"]
"""Meaning of a mark: on a flag, on words that none covers, on the turn, or on the mark before.

`take` is for an adjudicator, and takes an annotator's labels.
"""

Labeller = tuple[str, str | None]


class MarkedFlag(NamedTuple):
    """Identity of a flag: equal flags of a detector are one."""

    detector: str
    start: int | None
    """First character in the reply; None: its words do not stand there."""
    end: int | None
    text: str

    @property
    def id(self) -> str:
        """Its name on pages. Another flag in its place has another one."""
        return digest([*self])[:16]


class FlagMark(Frozen):
    """A line of the file of marks."""

    conversation: str
    turn: Count
    kind: MarkKind
    """`undo` takes back the annotator's last mark that was not taken back."""
    detector: str | None = None
    """Whose flag it is about; None: it is about none."""
    start: Count | None = None
    end: Count | None = None
    text: str = ""
    severity: int | None = Field(None, ge=1, le=5)
    """1 (harmless) to 5 (critical); of flags that are right, and of missed words."""
    reason: str = ""
    adjudicates: tuple[str, ...] = ()
    """Annotators whose different labels are settled; none: it is about the annotator's own labels."""
    takes: str | None = None
    spans: tuple[Quotation, ...] = ()
    """These labels, with their starts."""
    annotator: str = PERSON
    guideline: str | None = None
    time: AwareDatetime | None = None

    @model_validator(mode="after")
    def _require_fields(self) -> FlagMark:
        require_annotator(self.annotator)
        if self.kind in ("right", "missed") and (self.start is None or self.end is None):
            raise ValueError(f"`{self.kind}` needs `start` and `end`")
        if self.kind in ("right", "wrong") and self.detector is None:
            raise ValueError(f"`{self.kind}` needs a `detector`")
        if self.adjudicates and self.kind in ("right", "wrong", "unknown"):
            raise ValueError(f"`{self.kind}` does not settle a turn")
        if self.kind == "take" and (self.takes is None or not self.adjudicates):
            raise ValueError("`take` needs `takes` and `adjudicates`")
        return self

    @property
    def place(self) -> TurnPlace:
        """The turn."""
        return self.conversation, self.turn

    @property
    def labeller(self) -> Labeller:
        """Who pressed the key, and by which guideline."""
        return self.annotator, self.guideline

    @property
    def flag(self) -> MarkedFlag:
        """The flag that it is about."""
        return MarkedFlag(self.detector or "", self.start, self.end, self.text)


def read_marks(path: Path, labeller: Labeller) -> list[FlagMark]:
    """Read somebody's marks that were not taken back, in the order in which they were made.

    Raises:
        UsageError: a line is wrong.
    """
    found = (
        check_record(value, FlagMark, f"{path}, line {number}", SCHEMA) for number, value in read_lines(path)
    )
    return drop_undone(mark for mark in found if mark.labeller == labeller)


def drop_undone(marks: Iterable[FlagMark]) -> list[FlagMark]:
    """Return one annotator's marks without those that were taken back."""
    standing: list[FlagMark] = []
    for mark in marks:
        if mark.kind != "undo":
            standing.append(mark)
        elif standing:
            standing.pop()
    return standing


def list_flags(verdicts: Iterable[Verdict], turn: int) -> list[MarkedFlag]:
    """Return the flags of a turn, equal ones once."""
    found = [
        identify_flag(verdict.detector, span)
        for verdict in verdicts
        if verdict.turn == turn
        for span in verdict.spans or ()
    ]
    return list(dict.fromkeys(found))


def identify_flag(detector: str, span: Span) -> MarkedFlag:
    """Return the identity of a flag."""
    return MarkedFlag(detector, span.start, span.end, span.text)


@dataclass(frozen=True)
class Found:
    """An annotator's labels of a turn."""

    spans: tuple[Quotation, ...]
    unknown: bool = False


@dataclass(frozen=True)
class TurnStanding:
    """Where an annotator stands with a turn."""

    judged: Mapping[MarkedFlag, FlagMark]
    """The last mark of each flag that has one."""
    missed: Sequence[FlagMark]
    said: MarkKind | None
    """`clean`, `done`, `unknown` or `take`, if that was said of the turn."""


def sum_up(marks: Iterable[FlagMark]) -> TurnStanding:
    """Sum up an annotator's marks of one turn. `clean` and `take` take back what was marked before them."""
    judged: dict[MarkedFlag, FlagMark] = {}
    missed: list[FlagMark] = []
    said: MarkKind | None = None
    for mark in marks:
        if mark.kind in ("clean", "take"):
            judged, missed = {}, _list_taken(mark)
        if mark.kind in ("clean", "done", "unknown", "take"):
            said = mark.kind
            continue
        said = None if said == "unknown" else said
        if mark.kind == "missed":
            missed.append(mark)
        else:
            judged[mark.flag] = mark
    return TurnStanding(judged, missed, said)


def _list_taken(mark: FlagMark) -> list[FlagMark]:
    """Return the places of labels that are taken, as if the adjudicator had marked them."""
    return [
        FlagMark(
            conversation=mark.conversation,
            turn=mark.turn,
            kind="missed",
            start=span.start,
            end=(span.start or 0) + len(span.quote),
            text=span.quote,
            severity=span.severity,
            reason=span.reason,
        )
        for span in mark.spans
    ]


def conclude(marks: Iterable[FlagMark], flags: Collection[MarkedFlag], reply: str) -> Found | None:
    """Return what an annotator's marks of a turn, in their order, say; None: it is not annotated yet."""
    standing = sum_up(marks)
    judged, missed, said = standing.judged, standing.missed, standing.said
    if said == "unknown":
        return Found((), unknown=True)
    if said is None and not (flags and all(flag in judged for flag in flags)):
        return None
    return Found(quote_places([*(mark for mark in judged.values() if mark.kind == "right"), *missed], reply))


def quote_places(marks: Iterable[FlagMark], reply: str) -> tuple[Quotation, ...]:
    """Return the hallucinations that marks are about. Places that share a character are one.

    It has the words of all of them, the greatest severity, and each reason once.
    """
    places: list[tuple[int, int, int, list[str]]] = []
    for mark in sorted(marks, key=lambda mark: (mark.start or 0, mark.end or 0)):
        start, end = mark.start or 0, mark.end or 0
        severity = mark.severity or USUAL_SEVERITY
        if places and start < places[-1][1]:
            first, last, most, reasons = places[-1]
            places[-1] = (first, max(last, end), max(most, severity), [*reasons, mark.reason])
        else:
            places.append((start, end, severity, [mark.reason]))
    quotes = [reply[start:end] for start, end, _, _ in places]
    found = locate_quotations(reply, quotes)
    return tuple(
        Quotation(
            quote=quote,
            severity=severity,
            reason=" / ".join(dict.fromkeys(filter(None, reasons))),
            start=None if at == (start, end) else start,
        )
        for quote, at, (start, end, severity, reasons) in zip(quotes, found, places, strict=True)
    )
