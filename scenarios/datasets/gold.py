"""Annotated runs of hallulab: the hallucinated words of each reply, and why."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from pydantic import AwareDatetime, Field, field_validator

from hallulab.scenarios.datasets.loader import (
    SCHEMA,
    DatasetInfo,
    LoadRequest,
    locate_quotations,
    make_repeated_id_error,
)
from hallulab.scenarios.errors import UsageError
from hallulab.scenarios.files.data_files import check_record, open_to_read, read_records
from hallulab.scenarios.files.json_text import drop_torn_line, parse_lines
from hallulab.scenarios.labelled import ChatbotTurn, GoldSpan, LabelledData, LabelledReply
from hallulab.scenarios.transcript import Conversation, Frozen, Turn

ANNOTATIONS = "annotations.jsonl"
"""The file with the annotations, in the run's folder."""

CONVERSATIONS = "conversations.jsonl"
"""The run's journal."""

_UNLABELLED = "unlabelled"
_NO_EVIDENCE = "no evidence"

PERSON = "person"
"""The annotator of a line that names none."""
MODEL = "model:"
"""What the name of a model as annotator begins with."""
NAMED = f"{PERSON}:"
"""What the name of a person as annotator begins with, where several label."""

TurnPlace = tuple[str, int]
"""Identifier of a conversation, and index of a turn in it."""


def require_annotator(name: str) -> str:
    """Return the name; raise ValueError unless it is `person`, or `model:` and a name."""
    if (name != PERSON and not name.removeprefix(MODEL).strip()) or not name.startswith((PERSON, MODEL)):
        raise ValueError(f"{name!r} is no annotator; give `person`, or `model:` and its name")
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
    """Probability with which the turn was drawn."""


class Quotation(Frozen):
    """A quotation that annotators consider hallucinated."""

    quote: str = Field(min_length=1)
    """The words of the reply, verbatim."""
    severity: int = Field(ge=1, le=5)
    """1 (harmless) to 5 (critical)."""
    reason: str = ""
    """Why."""
    start: int | None = Field(None, ge=0)
    """Where they begin in the reply; None: where they stand first, the second such quotation next, etc."""


class Annotation(Frozen):
    """The annotation of a turn."""

    conversation: str
    """Identifier of the conversation."""
    turn: int = Field(ge=0)
    """Index of the turn."""
    key: str = Field(min_length=1)
    """Shared by equal replies to the same question with the same evidence, in any conversation."""
    spans: tuple[Quotation, ...]
    """The hallucinations; `[]`: none."""
    claims: bool = True
    """Whether the reply makes a claim that could be wrong."""
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
    def labeller(self) -> tuple[TurnPlace, str, str | None]:
        """The turn, who looked, and by which guideline: of these, one line stands."""
        return self.place, self.annotator, self.guideline

    def render_line(self) -> str:
        """Return the line of the file, without what is not known or not usual."""
        usual = {name for name in ("unknown", "withdrawn") if not getattr(self, name, False)}
        return self.model_dump_json(exclude_none=True, exclude=usual)


class AnnotationLine(Annotation):
    """A line of the file."""

    time: AwareDatetime | None = None
    """When it was written; None: not known."""
    unknown: bool = False
    """Whether the annotator looked and could not tell; then the turn counts as not looked at."""
    withdrawn: bool = False
    """Whether it takes back the line before it of the same turn, annotator and guideline."""


@dataclass(frozen=True)
class AnnotatedTurn:
    """A line of the file, and where its quotations stand in the reply."""

    line: Annotation
    """The line."""
    spans: tuple[GoldSpan, ...]
    """Where they stand."""


def load_gold(request: LoadRequest) -> LabelledData:
    """Load the annotated replies of one or several runs. A persona is a group.

    Replies with the same key become one reply: `turns` has all its turns, and `meta` describes the first.
    Turns without annotation or evidence are left out and counted.

    Args:
        request: its folder is a run folder with `conversations.jsonl` and `annotations.jsonl`, or holds such
            folders; there are no parts.

    Raises:
        UsageError: the request, or a line of a file, is wrong.
    """
    request.without_parts()
    replies: dict[str, LabelledReply] = {}
    left_out: Counter[str] = Counter()
    for folder in _find_run_folders(request):
        lines = _leave_out_unknown(read_annotations(folder / ANNOTATIONS))
        chosen = choose_lines(line for _, line in lines)
        annotations = {place: lines[at] for place, at in chosen.items()}
        for conversation, turn in _read_turns(_find_journals(request.dataset, folder)):
            found_line = annotations.pop((conversation.id, turn.index), None)
            if found_line is None:
                left_out[_UNLABELLED] += 1
            elif not any(passage.text for passage in turn.passages):
                left_out[_NO_EVIDENCE] += 1
            else:
                number, annotation = found_line
                place = f"{folder / ANNOTATIONS}, line {number}"
                found = _label_turn(conversation, turn, annotation, request.dataset, place)
                replies[found.id] = _merge_replies(replies.get(found.id), found, place)
        for (conversation_id, index), (number, _) in annotations.items():
            raise _make_no_turn_error(f"{folder / ANNOTATIONS}, line {number}", conversation_id, index)
    return LabelledData(tuple(replies.values()), dict(left_out))


def read_annotated_turns(path: Path, conversations: Iterable[Conversation]) -> list[AnnotatedTurn]:
    """Read what annotators found in the turns of a run that they looked at, line by line.

    A turn with a line was looked at; no spans: nothing was found. A turn may have several lines, of other
    annotators or under other guidelines. Lines of annotators that could not tell are left out.

    Raises:
        UsageError: a line is wrong, or about a turn that the run does not have.
    """
    annotations = _leave_out_unknown(read_annotations(path))
    replies = find_replies({line.place for _, line in annotations}, conversations)
    return [
        AnnotatedTurn(line, locate_spans(line, replies, f"{path}, line {number}"))
        for number, line in annotations
    ]


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
        raise _make_no_turn_error(place, *line.place)
    return _find_spans(reply, line, place)


def choose_guideline(lines: Iterable[Annotation]) -> str | None:
    """Return the guideline of most lines; of equally many, that of the last one."""
    counts: dict[str | None, int] = {}
    for line in lines:
        counts[line.guideline] = counts.pop(line.guideline, 0) + 1
    most = max(counts.values(), default=0)
    return next((one for one in reversed(counts) if counts[one] == most), None)


def choose_lines(lines: Iterable[Annotation]) -> dict[TurnPlace, int]:
    """Choose the line that counts of each turn; return its place among the lines.

    That is the one under the guideline of most lines; of several, a person's; else the first.
    """
    lines = list(lines)
    main = choose_guideline(lines)
    found: dict[TurnPlace, int] = {}
    for number, line in sorted(
        enumerate(lines), key=lambda one: (one[1].guideline != main, not is_person(one[1].annotator), one[0])
    ):
        found.setdefault(line.place, number)
    return found


def _make_no_turn_error(place: str, conversation: str, index: int) -> UsageError:
    return UsageError(
        f"{place}: {CONVERSATIONS} has no turn {index} of conversation {conversation}. Correct or delete the "
        "line."
    )


def _find_run_folders(request: LoadRequest) -> list[Path]:
    """Return the run folder, or the run folders inside the given folder."""
    inside = [] if request.data is None else sorted(request.data.glob(f"*/{ANNOTATIONS}"))
    if request.data is not None and inside and not (request.data / ANNOTATIONS).is_file():
        return [path.parent for path in inside]
    return [request.file(ANNOTATIONS).parent]


def read_annotations(path: Path) -> list[tuple[int, AnnotationLine]]:
    """Read the annotations that were not taken back, each with its line number.

    Raises:
        UsageError: a line is wrong or takes back what is not there, or an annotator annotated a turn twice
            under the same guideline.
    """
    found: dict[tuple[TurnPlace, str, str | None], tuple[int, AnnotationLine]] = {}
    for number, line in _read_lines(path):
        before = found.get(line.labeller)
        if line.withdrawn and before is None:
            raise UsageError(
                f"{path}, line {number}: no line above it annotates turn {line.turn} of conversation "
                f"{line.conversation}, so there is nothing to take back. Delete the line."
            )
        if line.withdrawn:
            del found[line.labeller]
        elif before is not None:
            raise UsageError(
                f"{path}, line {number}: turn {line.turn} of conversation {line.conversation} "
                f"is annotated in line {before[0]}, too. Delete one of them."
            )
        else:
            found[line.labeller] = number, line
    return list(found.values())


def _read_lines(path: Path) -> Iterator[tuple[int, AnnotationLine]]:
    with open_to_read(path) as file:
        for number, value in parse_lines(drop_torn_line(file, path), path):
            yield number, check_record(value, AnnotationLine, f"{path}, line {number}", SCHEMA)


def _leave_out_unknown(lines: list[tuple[int, AnnotationLine]]) -> list[tuple[int, AnnotationLine]]:
    return [(number, line) for number, line in lines if not line.unknown]


def _find_journals(dataset: str, folder: Path) -> list[Path]:
    """Return the journal of conversations in a run folder, or its shards."""
    shards = sorted(folder.glob("conversations-[0-9][0-9].jsonl"))
    return shards or [LoadRequest(dataset, folder).file(CONVERSATIONS)]


def _read_turns(paths: Iterable[Path]) -> Iterator[tuple[Conversation, Turn]]:
    seen: set[str] = set()
    for path in paths:
        for number, conversation in read_records(path, Conversation, SCHEMA):
            if conversation.id in seen:
                raise make_repeated_id_error(path, number, conversation.id)
            seen.add(conversation.id)
            for turn in conversation.turns:
                yield conversation, turn


def _label_turn(
    conversation: Conversation, turn: Turn, annotation: Annotation, dataset: str, place: str
) -> LabelledReply:
    spans = _find_spans(turn.reply, annotation, place)
    return LabelledReply(
        id=annotation.key,
        dataset=dataset,
        task="dialogue",
        question=turn.user,
        history=conversation.history(turn.index),
        passages=turn.passages,
        reply=turn.reply,
        label=bool(spans),
        spans=spans,
        turns=(ChatbotTurn(chatbot=conversation.chatbot, conversation=conversation.id, turn=turn.index),),
        group=conversation.persona,
        meta={
            "chatbot": conversation.chatbot,
            "conversation": conversation.id,
            "turn": turn.index,
            "scenario": conversation.scenario,
            "model": conversation.model,
        },
    )


def _find_spans(reply: str, annotation: Annotation, place: str) -> tuple[GoldSpan, ...]:
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


def _merge_replies(known: LabelledReply | None, found: LabelledReply, place: str) -> LabelledReply:
    """Return the known reply with one more turn; refuse it if the two differ."""
    if known is None:
        return found
    for what, one, other in (
        ("reply", known.reply, found.reply),
        ("question", known.question, found.question),
        (
            "evidence",
            [passage.text for passage in known.passages],
            [passage.text for passage in found.passages],
        ),
        ("annotation", known.spans, found.spans),
    ):
        if one != other:
            first = known.turns[0]
            raise UsageError(
                f"{place}: key: turn {first.turn} of conversation {first.conversation} has the same key "
                f"{found.id}, and another {what}. Give each its own key."
            )
    return known.model_copy(update={"turns": (*known.turns, *found.turns)})


INFO = DatasetInfo(
    load=load_gold,
    levels=("reply", "span"),
)
