"""Labelled data: replies of which somebody knows whether they are hallucinated."""

from __future__ import annotations

import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Self, overload

from pydantic import Field, model_validator

from scenarios.transcript import Frozen, Message, Passage


class GoldSpan(Frozen):
    """A stretch of a reply that annotators hold to be hallucinated."""

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
    """What several people said of the same reply, each for themselves."""

    values: tuple[float, ...] = Field(min_length=1)
    """One a person, in no order; the higher the better."""
    clean_from: float
    """The rating from which a reply is clean."""

    @property
    def hallucinated(self) -> bool:
        """Whether the median of the ratings is lower than that."""
        return statistics.median(self.values) < self.clean_from


class ChatbotTurn(Frozen):
    """A turn of a conversation with a chatbot."""

    chatbot: str
    """Name of the chatbot."""
    conversation: str
    """Identifier of the conversation."""
    turn: int = Field(ge=0)
    """Index of the turn."""


def require_fitting_spans(reply: str, label: bool | None, spans: tuple[GoldSpan, ...] | None) -> None:
    """Raise ValueError when a span reaches beyond the reply, or label and spans deny each other."""
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
    """One reply with its evidence and what annotators say of it; every data set is mapped to this."""

    id: str = Field(min_length=1)
    """Identifier, unique in its data set."""
    dataset: str
    """Name of the data set."""
    task: str
    """`dialogue`, `qa`, `summary`, `data2txt`, `claim` …"""
    question: str = ""
    """What the reply answers; empty where the data has none."""
    history: tuple[Message, ...] = ()
    """The dialogue before the question, oldest first."""
    passages: tuple[Passage, ...]
    """The evidence."""
    reply: str = Field(min_length=1)
    """The text under judgement."""
    label: bool | None
    """Whether the reply is hallucinated; None: nobody said."""
    spans: tuple[GoldSpan, ...] | None = None
    """Where; `()`: nowhere, None: the data has no spans."""
    ratings: Ratings | None = None
    """What the label comes from, where several people rated the reply; None: the data does not tell."""
    turns: tuple[ChatbotTurn, ...] = ()
    """Where the data are annotated runs: all turns in which this very reply was given, to the same question
    with the same evidence, perhaps by several chatbots. It is judged once and counts for each of them."""
    group: str
    """What the reply shares with others, such as its source text: the cluster in intervals."""
    meta: dict[str, str | int | float | bool | None] = Field(default_factory=dict)
    """What else the data says: the model that wrote the reply …"""

    @model_validator(mode="after")
    def _spans_fit(self) -> Self:
        require_fitting_spans(self.reply, self.label, self.spans)
        return self

    @property
    def hallucinated(self) -> bool:
        """Whether anybody says so, by label or spans."""
        return bool(self.label) or bool(self.spans)


@dataclass(frozen=True)
class LabelledData(Sequence[LabelledReply]):
    """The replies of a data set, and how many lines of it are not among them."""

    replies: tuple[LabelledReply, ...]
    """What a detector can be measured on."""
    left_out: Mapping[str, int] = field(default_factory=dict)
    """Reason → number of lines left out for it."""

    @overload
    def __getitem__(self, index: int) -> LabelledReply: ...

    @overload
    def __getitem__(self, index: slice) -> Sequence[LabelledReply]: ...

    def __getitem__(self, index: int | slice) -> LabelledReply | Sequence[LabelledReply]:
        return self.replies[index]

    def __len__(self) -> int:
        return len(self.replies)
