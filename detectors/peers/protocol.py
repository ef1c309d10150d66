"""Messages between our process and a peer's worker: one JSON object a line; see docs/peers.md.

Other people wrote the worker's packages, so every message of it is validated. Offsets are Unicode code points
into the text they belong to, end exclusive.
"""

from __future__ import annotations

from typing import Annotated, Literal, Self

from pydantic import Field, TypeAdapter, ValidationError, model_validator

from hallulab.agents.machine.worker_process import WorkerError
from hallulab.scenarios.transcript import Frozen

Share = Annotated[float, Field(ge=0.0, le=1.0, allow_inf_nan=False)]


class Text(Frozen):
    """A text and where its sentences are, so that every peer judges the same sentences."""

    text: str
    """The text."""
    sentences: tuple[tuple[int, int], ...]
    """Start and end of each sentence with words: a model's score of `---` is nothing but noise."""


class Request(Frozen):
    """One reply to judge."""

    id: str
    """The answer repeats it."""
    question: str
    """What the reply answers; empty if nobody asked."""
    passages: tuple[Text, ...]
    """The evidence; never empty."""
    reply: Text
    """The text under judgement."""


class Ready(Frozen):
    """The worker has loaded its model."""

    ready: Literal[True]
    """Nothing more to say."""


class Fatal(Frozen):
    """The worker cannot work at all."""

    fatal: str
    """Why."""


class ReplySpan(Frozen):
    """Something with a place in the reply, or without one."""

    start: int | None = Field(default=None, ge=0)
    """First character."""
    end: int | None = None
    """One past the last character."""
    text: str | None = None
    """What it is, if it has no place in the reply."""
    score: Share
    """Higher is worse."""

    @model_validator(mode="after")
    def _is_somewhere_or_something(self) -> Self:
        if (self.start is None) != (self.end is None) or (self.start is None and not self.text):
            raise ValueError("give start and end, or a text")
        if self.start is not None and self.end is not None and self.start >= self.end:
            raise ValueError(f"[{self.start}, {self.end}) is empty")
        return self


class PeerUnit(ReplySpan):
    """One thing that was scored."""

    kind: Literal["claim", "sentence", "word"]
    """What it is."""
    details: dict[str, float | str | None] = Field(default_factory=dict)
    """Named intermediate values."""


class Judged(Frozen):
    """The verdict on a reply."""

    id: str
    """The request's."""
    score: Share
    """Score of the reply, higher is worse."""
    spans: tuple[ReplySpan, ...] | None
    """What is flagged; None: the peer does not say where."""
    units: tuple[PeerUnit, ...]
    """Everything that was scored."""
    truncated: bool = False
    """Whether evidence or reply did not fit into the model."""


class Abstained(Frozen):
    """There is nothing to judge."""

    id: str
    """The request's."""
    abstained: str
    """What is missing."""


class Failed(Frozen):
    """This reply could not be judged; the next one may be."""

    id: str
    """The request's."""
    error: str
    """Why."""


class PeerPrompt(Frozen):
    """A prompt for the served model, sent as one user message at temperature 0."""

    step: str = Field(pattern=r"^[a-z_]{1,30}$")
    """What it is for: the second part of the call's purpose."""
    prompt: str
    """The message."""
    max_tokens: int = Field(ge=1, le=2048)
    """Length limit of the answer."""


class Ask(Frozen):
    """The worker wants the served model's answers before it goes on."""

    id: str
    """The request's."""
    ask: tuple[PeerPrompt, ...]
    """To be answered in this order."""


class Answers(Frozen):
    """Our answer to `Ask`."""

    id: str
    """The request's."""
    answers: tuple[str, ...] | None = None
    """The model's answers; None: refused."""
    refused: str | None = None
    """Why there are none."""


Message = Ready | Fatal | Judged | Abstained | Failed | Ask
"""A message of a worker."""

_MESSAGE: TypeAdapter[Message] = TypeAdapter(Message)


def read_message(line: bytes) -> Message:
    """Read a line of a worker.

    Raises:
        WorkerError: it is none of the messages.
    """
    try:
        return _MESSAGE.validate_json(line)
    except ValidationError as error:
        reason = error.errors()[0]["msg"]
        raise WorkerError(f"its worker said {line[:120]!r}, which is no answer ({reason})") from error
