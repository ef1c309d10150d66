"""Labelled replies in hallulab's own JSON-lines format, which `hallulab export` also writes.

docs/labelled-data.md describes it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Any, Self

from pydantic import BeforeValidator, Field, model_validator

from hallulab.scenarios.files.json_text import digest
from hallulab.scenarios.labelled import GoldSpan, LabelledReply, require_fitting_spans
from hallulab.scenarios.transcript import Frozen, Message, Passage


class PassageInput(Frozen):
    """A passage in the form that people write."""

    text: str = Field(min_length=1)
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


PassageInputs = Annotated[tuple[PassageInput, ...], BeforeValidator(wrap_texts)]
"""Evidence: objects, or plain texts."""


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
    passages: PassageInputs = Field(min_length=1)
    label: bool | None = Field(default=None, strict=True)
    """True if the reply is hallucinated; None: it is if there are spans."""
    spans: tuple[GoldSpan, ...] | None = None
    question: str = ""
    history: tuple[Message, ...] = ()
    id: str | None = Field(default=None, min_length=1)
    """Identifier; None: `line-` and the line's number."""
    task: str = "dialogue"
    group: str | None = None
    """Cluster in intervals; None: replies with the same passages form one."""
    meta: dict[str, str | int | float | bool | None] = Field(default_factory=dict)

    @model_validator(mode="after")
    def _spans_fit(self) -> Self:
        require_fitting_spans(self.reply, self.label, self.spans)
        return self


def build_labelled_reply(number: int, line: ReplyLine, dataset: str) -> LabelledReply:
    """Convert a line, numbered from 1, to a labelled reply."""
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
