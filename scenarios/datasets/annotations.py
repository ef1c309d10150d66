"""Annotations of the turns of a run: the lines of annotations.jsonl, and which of them count."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from pydantic import AwareDatetime, Field, field_validator, model_validator

from hallulab.scenarios.datasets.loader import SCHEMA, locate_quotations
from hallulab.scenarios.errors import UsageError
from hallulab.scenarios.files.data_files import read_appended_records
from hallulab.scenarios.labelled import GoldSpan
from hallulab.scenarios.transcript import Conversation, Frozen

ANNOTATIONS = "annotations.jsonl"

CONVERSATIONS = "conversations.jsonl"

PERSON = "person"
"""The annotator of a line that names none."""
MODEL = "model:"
"""Prefix of the name of a model as annotator."""
NAMED = f"{PERSON}:"
"""Prefix of the name of a person as annotator, where several label."""

TurnPlace = tuple[str, int]
"""Identifier of a conversation, and index of a turn in it."""

FindHeld = Callable[[Collection[TurnPlace]], Collection[TurnPlace]]
"""Returns those of the turns that stand in a run's journal, also where they do not count."""

Slot = tuple[TurnPlace, str | None, str | None]
"""Where one line can stand: turn, annotator and guideline. Of a line that adjudicates, None is annotator."""


def require_annotator(name: str) -> str:
    """Return the name; raise ValueError unless it is `person`, or `person:` or `model:` and a name."""
    if (name != PERSON and not name.removeprefix(MODEL).strip()) or not name.startswith((PERSON, MODEL)):
        raise ValueError(
            f"{name!r} is no annotator; give `person`, `person:` and a name, or `model:` and its name"
        )
    return name


def is_person(annotator: str) -> bool:
    """Return whether an annotator is a person: `person`, or `person:` and a name."""
    return annotator == PERSON or annotator.startswith(NAMED)


class Draw(NamedTuple):
    """How a turn was drawn to be annotated (`hallulab annotate`)."""

    number: int
    """Draws are numbered from 1; each is of the turns that nobody had annotated before."""
    stratum: int
    """Class of the detector's score; turns of a chatbot and a class were equally likely."""
    propensity: float


class Quotation(Frozen):
    """A quotation that annotators consider hallucinated."""

    quote: str = Field(min_length=1)
    """The words of the reply, verbatim."""
    severity: int = Field(ge=1, le=5)
    """1 (harmless) to 5 (critical)."""
    reason: str = ""
    start: int | None = Field(None, ge=0)
    """Where they begin in the reply; None: where they stand first, the second such quotation next, etc."""


class Annotation(Frozen):
    """The annotation of a turn."""

    conversation: str
    turn: int = Field(ge=0)
    key: str = Field(min_length=1)
    """Shared by equal replies to the same question with the same evidence, in any conversation."""
    spans: tuple[Quotation, ...]
    claims: bool = True
    """True if the reply makes a claim that could be wrong."""
    annotator: str = PERSON
    """Who looked: `person`, `person:` and a name, or `model:` and its name."""
    guideline: str | None = Field(None, min_length=1)
    """Hash of the text that says what counts as a hallucination; None: not known."""
    propensity: float | None = Field(None, gt=0, le=1)
    """Probability with which the turn was drawn; None: as good as drawn at random."""
    draw: int = Field(1, ge=1)
    """Number of the draw. Of a turn without propensity it means nothing, as the next one."""
    stratum: int = Field(0, ge=0)
    """Class of the detector's score within the draw."""

    @field_validator("annotator")
    @classmethod
    def _require_annotator(cls, name: str) -> str:
        return require_annotator(name)

    @property
    def place(self) -> TurnPlace:
        """The turn."""
        return self.conversation, self.turn

    @property
    def drawn(self) -> Draw | None:
        """How the turn was drawn; None: not by hallulab."""
        return None if self.propensity is None else Draw(self.draw, self.stratum, self.propensity)

    @property
    def slot(self) -> Slot:
        """The turn, who looked, and by which guideline: of these, one line stands."""
        return self.place, self.annotator, self.guideline

    def render_line(self) -> str:
        """Return the line of the file, without what is not known or not usual."""
        rare = ("unknown", "withdrawn", "adjudicates")
        usual = {name for name in rare if not getattr(self, name, False)}
        return self.model_dump_json(exclude_none=True, exclude=usual)


class AnnotationLine(Annotation):
    """A line of the file."""

    time: AwareDatetime | None = None
    unknown: bool = False
    """True if the annotator looked and could not tell; then the turn counts as not looked at."""
    withdrawn: bool = False
    """True if it takes back the line before it of the same turn, annotator and guideline."""
    adjudicates: tuple[str, ...] = ()
    """Annotators whose different labels of the turn it settles; none: it has the annotator's own labels."""

    @model_validator(mode="after")
    def _require_decision(self) -> AnnotationLine:
        for name in self.adjudicates:
            require_annotator(name)
        if self.adjudicates and self.unknown:
            raise ValueError("a line with `adjudicates` says what counts, so it cannot be `unknown`")
        return self

    @property
    def slot(self) -> Slot:
        """As of any line; but a turn has one line that adjudicates, whoever wrote it."""
        return self.place, None if self.adjudicates else self.annotator, self.guideline


@dataclass(frozen=True)
class AnnotatedTurn:
    """A line of the file, and where its quotations stand in the reply."""

    line: AnnotationLine
    spans: tuple[GoldSpan, ...]
    length: int
    """Characters of the reply."""


class AnnotatedTurns(NamedTuple):
    """Lines of the file."""

    turns: Sequence[AnnotatedTurn]
    """Annotations of turns that count."""
    left_out: int
    """How many others there are: of a failed try that was replaced, or of an older user or chatbot."""


def read_annotated_turns(
    path: Path, conversations: Iterable[Conversation], find_held: FindHeld
) -> AnnotatedTurns:
    """Read what annotators found in the turns of a run that they looked at, line by line.

    A turn with a line was looked at; no spans: nothing was found. A turn may have several lines, of other
    annotators or under other guidelines. Lines of annotators that could not tell are left out.

    Args:
        conversations: those of the run that count.

    Raises:
        UsageError: a line is wrong, or about a turn that the run does not have.
    """
    annotations = leave_out_unknown(read_annotations(path))
    replies = find_replies({line.place for _, line in annotations}, conversations)
    return locate_annotations(path, annotations, replies, find_held)


def locate_annotations(
    path: Path,
    annotations: Sequence[tuple[int, AnnotationLine]],
    replies: Mapping[TurnPlace, str],
    find_held: FindHeld,
) -> AnnotatedTurns:
    """Find the quotations of lines in the replies that they are about. Turns that do not count are left out.

    Args:
        annotations: lines of the file, each with its number.

    Raises:
        UsageError: a turn stands nowhere in the journal, or a quotation does not stand in the reply.
    """
    missing = {line.place for _, line in annotations} - replies.keys()
    held = find_held(missing)
    turns = [
        AnnotatedTurn(line, locate_spans(line, replies, f"{path}, line {number}"), len(replies[line.place]))
        for number, line in annotations
        if line.place not in held
    ]
    return AnnotatedTurns(turns, len(annotations) - len(turns))


def find_replies(wanted: Iterable[TurnPlace], conversations: Iterable[Conversation]) -> dict[TurnPlace, str]:
    """Return the replies of those turns that there are."""
    wanted = set(wanted)
    return {
        (each.id, turn.index): turn.reply
        for each in conversations
        for turn in each.turns
        if (each.id, turn.index) in wanted
    }


def locate_spans(line: Annotation, replies: Mapping[TurnPlace, str], place: str) -> tuple[GoldSpan, ...]:
    """Find the quotations of a line in the reply that it is about.

    Args:
        place: of the line, for errors.

    Raises:
        UsageError: there is no such turn, or a quotation does not stand in the reply.
    """
    reply = replies.get(line.place)
    if reply is None:
        raise make_no_turn_error(place, *line.place)
    return find_spans(reply, line, place)


def choose_guideline(lines: Iterable[AnnotationLine]) -> str | None:
    """Return the guideline of most annotators' own lines; of equally many, that of the last one."""
    counts: dict[str | None, int] = {}
    for line in lines:
        if not line.adjudicates:
            # Taken out and put in again: the last line's guideline stands last, which decides a tie.
            counts[line.guideline] = counts.pop(line.guideline, 0) + 1
    most = max(counts.values(), default=0)
    return next((one for one in reversed(counts) if counts[one] == most), None)


def choose_lines(lines: Iterable[AnnotationLine]) -> dict[TurnPlace, int]:
    """Choose the line that counts of each turn; return its place among the lines.

    It is one under the guideline of most lines. Of several, the one that adjudicates counts; else a
    person's; else the first.
    """
    lines = list(lines)
    main = choose_guideline(lines)

    def rank(at: int) -> tuple[bool, bool, bool, int]:
        line = lines[at]
        return line.guideline != main, not line.adjudicates, not is_person(line.annotator), at

    found: dict[TurnPlace, int] = {}
    for at in sorted(range(len(lines)), key=rank):
        found.setdefault(lines[at].place, at)
    return found


def read_annotations(path: Path) -> list[tuple[int, AnnotationLine]]:
    """Read the annotations that were not taken back, each with its line number.

    Raises:
        UsageError: a line is wrong or takes back what is not there, an annotator annotated a turn twice under
            the same guideline, or a turn is adjudicated twice or of annotators who did not annotate it.
    """
    found: dict[Slot, tuple[int, AnnotationLine]] = {}
    seen: set[Slot] = set()
    for number, line in read_appended_records(path, AnnotationLine, SCHEMA):
        before = found.get(line.slot)
        if line.withdrawn and before is None:
            raise UsageError(
                f"{path}, line {number}: no line above it annotates turn {line.turn} of conversation "
                f"{line.conversation}, so there is nothing to take back. Delete the line."
            )
        if line.withdrawn:
            del found[line.slot]
        elif before is not None:
            what = "adjudicated" if line.adjudicates else "annotated"
            raise UsageError(
                f"{path}, line {number}: turn {line.turn} of conversation {line.conversation} "
                f"is {what} in line {before[0]}, too. Delete one of them."
            )
        else:
            seen.add(line.slot)
            found[line.slot] = number, line
    for number, line in found.values():
        for name in line.adjudicates:
            if (line.place, name, line.guideline) not in seen:
                raise UsageError(
                    f"{path}, line {number}: adjudicates: no line annotates turn {line.turn} of conversation "
                    f"{line.conversation} by {name} under the same guideline. Correct the name."
                )
    return list(found.values())


def leave_out_unknown(lines: list[tuple[int, AnnotationLine]]) -> list[tuple[int, AnnotationLine]]:
    """Return the lines of annotators who could tell."""
    return [(number, line) for number, line in lines if not line.unknown]


def find_spans(reply: str, annotation: Annotation, place: str) -> tuple[GoldSpan, ...]:
    """Find the quotations of an annotation in the reply."""
    spans = []
    quotes = [span.quote for span in annotation.spans]
    for span, found in zip(annotation.spans, locate_quotations(reply, quotes), strict=True):
        quote = span.quote
        if span.start is not None:
            stands = reply.startswith(quote, span.start)
            found = (span.start, span.start + len(quote)) if stands else None
        if found is None:
            how = "is given more often than it stands" if quote in reply else "does not stand"
            how = how if span.start is None else f"does not stand at {span.start}"
            raise UsageError(f"{place}: spans: the quotation {quote!r} {how} in the reply. Correct it.")
        spans.append(GoldSpan(start=found[0], end=found[1]))
    return tuple(spans)


def make_no_turn_error(place: str, conversation: str, index: int) -> UsageError:
    """Make the error for an annotation of a turn that the run does not have."""
    return UsageError(
        f"{place}: {CONVERSATIONS} has no turn {index} of conversation {conversation}. Correct or delete the "
        "line."
    )
