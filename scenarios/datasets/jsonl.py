"""Labelled data in hallulab's own JSON-lines formats: single replies, and chats.

Chats of several turns with annotated hallucinations, as in DetectorEval (HalluDetect, section 3.3).
HalluDetect describes the data set but does not publish its format. Our format has what the paper describes:
turns of a user and a chatbot, and for each reply the exact hallucinated sentences, with a justification
(section 3.2, "Output Format").

Labelled replies in hallulab's own JSON-lines format, which `hallulab export` also writes.
docs/labelled-data.md describes it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, Self

from pydantic import Field, field_validator, model_validator

from hallulab.scenarios.datasets.loader import SCHEMA, LoadRequest, locate_quotations, make_repeated_id_error
from hallulab.scenarios.files.data_files import read_records
from hallulab.scenarios.files.json_text import digest
from hallulab.scenarios.labelled import GoldSpan, LabelledData, LabelledReply, require_fitting_spans
from hallulab.scenarios.transcript import Frozen, Message, Passage

_UNLABELLED = "unlabelled"


class PassageInput(Frozen):
    """A passage in the form that people write."""

    text: str = Field(min_length=1)
    """The passage itself."""
    id: str | None = None
    """Its identifier; None: `document#position`."""
    document: str | None = None
    """The document that it was cut from; None: `passage`."""
    topic: str | None = None
    """Its topic in the scenario pack, for detectors that are stricter on some topics."""


def wrap_texts(value: Any) -> Any:
    """Turn plain texts in a list into objects with a `text`, for validators before `PassageInput`."""
    if isinstance(value, list):
        return [{"text": item} if isinstance(item, str) else item for item in value]
    return value


def build_input_passages(evidence: Sequence[PassageInput]) -> tuple[Passage, ...]:
    """Make passages; those without an identifier get one by position."""
    return tuple(
        Passage(
            id=passage.id or f"{passage.document or 'passage'}#{position}",
            document=passage.document or "passage",
            text=passage.text,
            topic=passage.topic,
        )
        for position, passage in enumerate(evidence)
    )


class ReplyLine(Frozen):
    """A line of the file. Its fields are those of `LabelledReply`, except as described here."""

    reply: str = Field(min_length=1)
    """The text under judgement."""
    passages: tuple[PassageInput, ...] = Field(min_length=1)
    """The evidence: objects, or plain texts."""
    label: bool | None = Field(default=None, strict=True)
    """Whether the reply is hallucinated; None: it is if there are spans."""
    spans: tuple[GoldSpan, ...] | None = None
    """The hallucinated parts."""
    question: str = ""
    """The question that the reply answers."""
    history: tuple[Message, ...] = ()
    """The dialogue before the question."""
    id: str | None = Field(default=None, min_length=1)
    """Identifier; None: `line-` and the line's number."""
    task: str = "dialogue"
    """Kind of task."""
    group: str | None = None
    """Cluster in intervals; None: replies with the same passages form one."""
    meta: dict[str, str | int | float | bool | None] = Field(default_factory=dict)
    """Other data."""

    @field_validator("passages", mode="before")
    @classmethod
    def _a_text_is_a_passage(cls, value: Any) -> Any:
        return wrap_texts(value)

    @model_validator(mode="after")
    def _spans_fit(self) -> Self:
        require_fitting_spans(self.reply, self.label, self.spans)
        return self


def load_jsonl(path: Path) -> LabelledData:
    """Load the labelled replies of a file. Lines with neither label nor spans are left out and counted.

    Raises:
        UsageError: the file is not there, or a line of it is wrong.
    """
    replies: dict[str, LabelledReply] = {}
    left_out: Counter[str] = Counter()
    for number, line in read_records(path, ReplyLine, SCHEMA):
        if line.label is None and line.spans is None:
            left_out[_UNLABELLED] += 1
            continue
        reply = build_labelled_reply(number, line, path.stem)
        if reply.id in replies:
            raise make_repeated_id_error(path, number, reply.id)
        replies[reply.id] = reply
    return LabelledData(tuple(replies.values()), dict(left_out))


def build_labelled_reply(number: int, line: ReplyLine, dataset: str) -> LabelledReply:
    """Convert a line to a labelled reply.

    Args:
        number: the line's number, from 1.
        dataset: name of the data set.
    """
    return LabelledReply(
        id=line.id or f"line-{number}",
        dataset=dataset,
        task=line.task,
        question=line.question,
        history=line.history,
        passages=build_input_passages(line.passages),
        reply=line.reply,
        label=bool(line.spans) if line.label is None else line.label,
        spans=line.spans,
        group=line.group or digest([passage.text for passage in line.passages])[:16],
        meta=line.meta,
    )


FILE = "chats.jsonl"
"""The file in the data set's folder."""

_NO_EVIDENCE = "no evidence"


class _Hallucination(Frozen):
    """A hallucination that annotators found."""

    text: str = Field(min_length=1)
    """The words of the reply, verbatim."""
    reason: str = ""
    """Why."""
    label: str = Field(default="hallucination", min_length=1)
    """Its kind."""


class _Exchange(Frozen):
    """A message and the reply to it."""

    user: str
    """The user's message."""
    reply: str = Field(min_length=1)
    """The chatbot's reply."""
    passages: tuple[PassageInput, ...] = ()
    """The chatbot's evidence: objects, or plain texts."""
    hallucinations: tuple[_Hallucination, ...] | None = None
    """The annotation; `[]`: none found, None: not annotated."""

    @field_validator("passages", mode="before")
    @classmethod
    def _a_text_is_a_passage(cls, value: Any) -> Any:
        return wrap_texts(value)

    @model_validator(mode="after")
    def _hallucinations_are_quoted(self) -> Self:
        for found, place in self._placed():
            if found.text not in self.reply:
                raise ValueError(f"the hallucination {found.text!r} does not stand in the reply")
            if place is None:
                raise ValueError(
                    f"the hallucination {found.text!r} is given more often than it stands in the reply"
                )
        return self

    def _placed(self) -> Iterator[tuple[_Hallucination, tuple[int, int] | None]]:
        found = self.hallucinations or ()
        return zip(found, locate_quotations(self.reply, [one.text for one in found]), strict=True)

    def spans(self) -> tuple[GoldSpan, ...]:
        """Return the places of the hallucinations; the n-th equal quotation has the n-th place."""
        return tuple(
            GoldSpan(start=place[0], end=place[1], label=found.label)
            for found, place in self._placed()
            if place is not None
        )


class _ChatLine(Frozen):
    """A line of the file."""

    id: str = Field(min_length=1)
    """Identifier, unique in the file."""
    turns: tuple[_Exchange, ...] = Field(min_length=1)
    """The turns, in order."""
    model: str | None = None
    """The chatbot."""


def load_chats(request: LoadRequest) -> LabelledData:
    """Load the annotated replies of all chats, each with the dialogue before it. A chat is a group.

    Turns without annotation or evidence are left out and counted. They stay in the dialogue of later turns.

    Args:
        request: its folder holds `chats.jsonl`; there are no parts.

    Raises:
        UsageError: the request or a line of the file is wrong.
    """
    path = request.file(FILE)
    request.without_parts()
    chats: dict[str, _ChatLine] = {}
    left_out: Counter[str] = Counter()
    for number, chat in read_records(path, _ChatLine, SCHEMA):
        if chat.id in chats:
            raise make_repeated_id_error(path, number, chat.id)
        chats[chat.id] = chat
        for turn in chat.turns:
            if reason := _explain_left_out(turn):
                left_out[reason] += 1
    replies = tuple(reply for chat in chats.values() for reply in _label_turns(chat))
    return LabelledData(replies, dict(left_out))


def _explain_left_out(turn: _Exchange) -> str | None:
    if turn.hallucinations is None:
        return _UNLABELLED
    return None if turn.passages else _NO_EVIDENCE


def _label_turns(chat: _ChatLine) -> Iterator[LabelledReply]:
    history: list[Message] = []
    for position, turn in enumerate(chat.turns):
        if _explain_left_out(turn) is None:
            spans = turn.spans()
            yield LabelledReply(
                id=f"{chat.id}-{position}",
                dataset="detector-eval",
                task="dialogue",
                question=turn.user,
                history=tuple(history),
                passages=build_input_passages(turn.passages),
                reply=turn.reply,
                label=bool(spans),
                spans=spans,
                group=chat.id,
                meta={"conversation": chat.id, "model": chat.model, "turn": position},
            )
        history += [Message(role="user", text=turn.user), Message(role="assistant", text=turn.reply)]
