"""Labelled data: replies with a judgement by people whether they are hallucinated."""

from __future__ import annotations

import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Self, overload

from pydantic import Field, model_validator

from hallulab.scenarios.transcript import Frozen, Message, Passage
from hallulab.scenarios.turn_views import Origin, TurnView


class GoldSpan(Frozen):
    """A part of a reply that annotators consider hallucinated."""

    start: int = Field(ge=0, strict=True)
    """First character: index of a Unicode code point in the reply."""
    end: int = Field(gt=0, strict=True)
    """One past the last character."""
    label: str = Field(default="hallucination", min_length=1)
    """The annotators' kind of hallucination."""

    @model_validator(mode="after")
    def _is_not_empty(self) -> Self:
        if self.start >= self.end:
            raise ValueError(f"span [{self.start}, {self.end}) is empty")
        return self


class Ratings(Frozen):
    """Independent ratings of one reply by several people."""

    values: tuple[float, ...] = Field(min_length=1)
    """One rating a person, in no order; higher is better."""
    clean_from: float
    """The lowest rating of a clean reply."""

    @property
    def hallucinated(self) -> bool:
        """True if the median of the ratings is below `clean_from`."""
        return statistics.median(self.values) < self.clean_from


class ChatbotTurn(Frozen):
    """A turn of a conversation with a chatbot."""

    chatbot: str
    conversation: str
    turn: int = Field(ge=0)


def require_fitting_spans(reply: str, label: bool | None, spans: tuple[GoldSpan, ...] | None) -> None:
    """Raise ValueError if a span ends after the reply, or label and spans contradict each other."""
    for span in spans or ():
        if span.end > len(reply):
            raise ValueError(
                f"span [{span.start}, {span.end}) ends after the reply, which has {len(reply)} characters"
            )
    if spans and label is False:
        raise ValueError("the label is false, yet there are spans")
    if label and spans == ():
        raise ValueError(
            "the label is true, yet spans is [], which says nowhere; leave spans out if nobody knows where"
        )


class LabelledReply(Frozen):
    """One reply with its evidence and annotation. Every data set is converted to this type."""

    id: str = Field(min_length=1)
    """Identifier, unique in its data set."""
    dataset: str
    task: str
    """`dialogue`, `qa`, `summary`, `data2txt`, `claim` …"""
    question: str = ""
    """The question that the reply answers; empty if the data has none."""
    history: tuple[Message, ...] = ()
    """The dialogue before the question, oldest first."""
    passages: tuple[Passage, ...]
    reply: str = Field(min_length=1)
    label: bool | None
    """True if the reply is hallucinated; None: not annotated."""
    spans: tuple[GoldSpan, ...] | None = None
    """The hallucinated parts; `()`: none, None: the data has no spans."""
    ratings: Ratings | None = None
    """The ratings behind the label, if several people rated the reply; None: not known."""
    turns: tuple[ChatbotTurn, ...] = ()
    """For annotated runs: all turns with this same reply to the same question with the same evidence, perhaps
    by several chatbots. The reply is judged once and counts for each turn."""
    group: str
    """Shared by dependent replies, such as those to one source text: the cluster in intervals."""
    meta: dict[str, str | int | float | bool | None] = Field(default_factory=dict)
    """Other data: the model that wrote the reply …"""

    @model_validator(mode="after")
    def _spans_fit(self) -> Self:
        require_fitting_spans(self.reply, self.label, self.spans)
        return self

    @property
    def hallucinated(self) -> bool:
        """True if the label or a span says so."""
        return bool(self.label) or bool(self.spans)

    @property
    def view(self) -> TurnView:
        """The view of a detector, without its origin."""
        return TurnView(
            history=self.history, question=self.question, passages=self.passages, reply=self.reply
        )

    @property
    def origin(self) -> Origin:
        """Its origin by `meta`: `source`, `model`, `temperature`."""
        temperature = self.meta.get("temperature")
        return Origin(
            collection=str(self.meta.get("source") or self.dataset),
            generator=str(self.meta.get("model") or ""),
            temperature=float(temperature) if isinstance(temperature, int | float) else None,
        )


@dataclass(frozen=True)
class LabelledData(Sequence[LabelledReply]):
    """The replies of a data set, and the numbers of lines that were left out."""

    replies: tuple[LabelledReply, ...]
    left_out: Mapping[str, int] = field(default_factory=dict)
    """Reason → number of lines left out."""
    notes: tuple[str, ...] = ()
    """Sentences about how the file was read."""

    @overload
    def __getitem__(self, index: int) -> LabelledReply: ...

    @overload
    def __getitem__(self, index: slice) -> Sequence[LabelledReply]: ...

    def __getitem__(self, index: int | slice) -> LabelledReply | Sequence[LabelledReply]:
        return self.replies[index]

    def __len__(self) -> int:
        return len(self.replies)
