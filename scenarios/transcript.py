"""The vocabulary every other module speaks: passages, turns, conversations, spans and verdicts.

All types are frozen pydantic models: they are journal lines as well as values. Character offsets are
Unicode code points into the reply they belong to (Python string indices), end exclusive.
"""

from __future__ import annotations

from typing import Annotated, Literal, Protocol, Self, runtime_checkable

from pydantic import BaseModel, ConfigDict, Field, model_validator

StopReason = Literal["goal_reached", "gave_up", "max_turns", "loop", "error"]
Outcome = Literal["scored", "abstained", "failed"]

Number = Annotated[float, Field(ge=-1e12, le=1e12, allow_inf_nan=False)]
"""A score, or another measured number: so bounded that sums and squares of many are finite, too."""

Seconds = Annotated[float, Field(ge=0.0, le=1e9, allow_inf_nan=False)]
"""How long something took: at most thirty years."""

Count = Annotated[int, Field(ge=0, le=10**12)]
"""How many there are, or how many come before."""

Seed = Annotated[int, Field(ge=-(2**63), lt=2**63)]
"""What random choices depend on; 64 bits, as servers take it."""


class Frozen(BaseModel):
    """Base of all value types: immutable; an unknown field, or a number that is not finite, is an error."""

    model_config = ConfigDict(frozen=True, extra="forbid", arbitrary_types_allowed=True, allow_inf_nan=False)


class Message(Frozen):
    """One utterance of a dialogue."""

    role: Literal["user", "assistant"]
    """Who speaks: the (simulated) user or the chatbot."""
    text: str
    """What was said."""


class Passage(Frozen):
    """A piece of a knowledge document, as retrieved."""

    id: str
    """Stable identifier, unique in its knowledge base: `document#position`."""
    document: str
    """Name of the document the passage was cut from."""
    text: str
    """The passage itself."""
    score: Number | None = None
    """Cosine similarity to the query in [-1, 1]; None where nothing was searched."""
    topic: str | None = None
    """Topic label of the document (MetaRAG section 3.6: a deployment signal), or None."""


class Call(Frozen):
    """One request to a model and what it cost."""

    purpose: str
    """`role.step`, such as `chatbot.generate` or `user.message`; the role is the part before the dot."""
    model: str
    """The name the model is served under."""
    prompt_tokens: Count | None
    """Tokens read; None when the server did not say."""
    completion_tokens: Count | None
    """Tokens written; None when the server did not say."""
    cached_tokens: Count | None = None
    """Prompt tokens the server took from its prefix cache; None when it did not say."""
    latency_s: Seconds
    """Seconds from sending to the full answer. A replayed call keeps the recorded latency."""
    replayed: bool = False
    """True when the answer came from a recording or from an identical request of the same run."""
    finish_reason: str | None = None
    """Why the model stopped: `stop`, `length`, …; None when the call failed."""
    error: str | None = None
    """Why the call failed, or None."""

    @property
    def role(self) -> str:
        """The part of `purpose` before the first dot."""
        return self.purpose.split(".", 1)[0]

    @property
    def tokens(self) -> int:
        """Prompt plus completion tokens; an unknown count adds nothing."""
        return (self.prompt_tokens or 0) + (self.completion_tokens or 0)

    @property
    def computed_tokens(self) -> int | None:
        """Tokens less those out of the server's cache; None when the server did not tell all three counts."""
        if self.prompt_tokens is None or self.completion_tokens is None or self.cached_tokens is None:
            return None
        return self.prompt_tokens - self.cached_tokens + self.completion_tokens


class Step(Frozen):
    """Something a chatbot did on the way to its reply."""

    name: str
    """`reformulated_query`, `draft`, `claims`, `verdicts`, `route`, …"""
    text: str
    """What came out of it."""


class Turn(Frozen):
    """One exchange: a user message and the chatbot's reply to it."""

    index: Count
    """Position in the conversation, from 0."""
    user: str
    """What the user said."""
    query: str | None = None
    """The stand-alone query that was searched for, where the chatbot made one."""
    passages: tuple[Passage, ...] = ()
    """The evidence the chatbot was given."""
    reply: str
    """What the chatbot answered."""
    steps: tuple[Step, ...] = ()
    """What the chatbot did on the way."""
    calls: tuple[Call, ...] = ()
    """Model calls of this turn, the user's and the chatbot's."""


class Conversation(Frozen):
    """A whole dialogue between one persona and one chatbot: a line of `conversations.jsonl`."""

    id: str
    """Hash of all that determines the conversation; the key that resuming goes by. At its end `-try2`,
    `-try3`, … where earlier tries failed."""
    scenario: str
    """Name of the scenario pack."""
    persona: str
    """Identifier of the persona in its pack."""
    chatbot: str
    """Name of the chatbot under test."""
    model: str
    """Name of the chatbot's model."""
    seed: Seed
    """Seed of the conversation; equal seeds pair conversations across chatbots."""
    version: str = ""
    """Of those who made it, the simulated user's and the chatbot's joined by a hyphen; empty: not known."""
    turns: tuple[Turn, ...]
    """The finished turns, in order."""
    stop_reason: StopReason
    """Why it ended."""
    error: str | None = None
    """What failed when `stop_reason` is `error`; the turns before it are kept."""
    calls: tuple[Call, ...] = ()
    """Calls outside any finished turn: the user's closing decision, or a turn that failed."""

    @model_validator(mode="after")
    def _turns_in_order(self) -> Self:
        for position, turn in enumerate(self.turns):
            if turn.index != position:
                raise ValueError(
                    f"`turns.{position}.index` is {turn.index}; turns are numbered from 0, in order"
                )
        return self

    def history(self, turn: int) -> tuple[Message, ...]:
        """The messages before turn number `turn`, oldest first."""
        return tuple(
            message
            for earlier in self.turns[:turn]
            for message in (
                Message(role="user", text=earlier.user),
                Message(role="assistant", text=earlier.reply),
            )
        )


class Span(Frozen):
    """A stretch of a reply that a detector holds to be hallucinated.

    >>> reply = "The fee is Rs 500."
    >>> span = Span(start=11, end=17, text="Rs 500", reason="The document says Rs 200.")
    >>> reply[span.start : span.end] == span.text
    True
    """

    start: Count | None
    """First character, or None when the quoted text was not found in the reply (it still counts)."""
    end: Count | None
    """One past the last character, or None like `start`."""
    text: str
    """The flagged text: `reply[start:end]` when located, else the detector's own quotation."""
    severity: Number | None = None
    """1 (harmless) to 5 (critical), for detectors that rate it."""
    score: Number | None = None
    """The detector's score for this span, higher is worse."""
    reason: str = ""
    """Why it was flagged."""
    evidence: str = ""
    """The passage text or identifier that the judgement rests on, or empty."""

    @model_validator(mode="after")
    def _offsets_agree(self) -> Self:
        if (self.start is None) != (self.end is None):
            raise ValueError("start and end are given together or not at all")
        if self.start is not None and self.end is not None and not self.start < self.end:
            raise ValueError(f"span [{self.start}, {self.end}) is empty")
        return self


class Unit(Frozen):
    """One thing a detector scored on the way: a factoid, a sentence, a word."""

    kind: Literal["claim", "sentence", "word"] | None = None
    """What was scored, for detectors that score the same text at several levels; None: a claim."""
    text: str
    """The unit as the detector saw it."""
    start: Count | None = None
    """First character in the reply, or None when it has no place there."""
    end: Count | None = None
    """One past the last character, or None like `start`."""
    score: Number | None = None
    """The unit's score, higher is worse; None when it could not be scored."""
    details: dict[str, Number | str | None] = Field(default_factory=dict)
    """Named intermediate values, such as probabilities of each mutation."""


class Judgement(Frozen):
    """What a detector says of one reply.

    >>> wrong = Span(start=11, end=17, text="Rs 500")
    >>> Judgement(outcome="scored", score=0.9, flagged=True, spans=(wrong,)).localised
    True
    >>> Judgement(outcome="scored", score=0.9, flagged=True).localised
    False
    >>> Judgement(outcome="failed", error="The model gave no answer.").flagged is None
    True
    """

    outcome: Outcome
    """`scored`, or `abstained` (nothing to judge by), or `failed` (with `error`)."""
    score: Number | None = None
    """Response-level score, higher is worse; None unless scored."""
    flagged: bool | None = None
    """Whether the score reaches the detector's threshold; None unless scored."""
    spans: tuple[Span, ...] | None = None
    """The hallucinations, one span each; `()` of an unflagged reply is judged clean, None is not judged, or
    not localised (see `localised`)."""
    units: tuple[Unit, ...] = ()
    """What was scored on the way."""
    word_scores: tuple[Number, ...] | None = None
    """The score of each word of the reply (stretch without white space), in order, higher is worse; for
    detectors that score every word, in place of as many units. None where they do not, or unless scored."""
    unit_thresholds: dict[Literal["claim", "sentence", "word"], Number] = Field(default_factory=dict)
    """Kind of unit → score from which such a unit, or word, is flagged, for detectors that decide on units
    apart from the reply; what `spans` marks is then for reading."""
    truncated: bool = False
    """True when evidence or reply had to be cut to fit the model."""
    calls: tuple[Call, ...] = ()
    """Model calls spent, also on a judgement that failed."""
    error: str | None = None
    """Why it abstained or failed."""

    @model_validator(mode="after")
    def _a_failure_is_never_clean(self) -> Self:
        judged = (self.score, self.flagged, self.spans, self.word_scores)
        if self.outcome != "scored" and any(found is not None for found in judged):
            raise ValueError(f"outcome {self.outcome!r} carries a score, a flag or spans")
        if self.outcome != "scored" and not self.error:
            raise ValueError(f"outcome {self.outcome!r} needs a reason in `error`")
        if self.outcome == "scored" and (self.score is None or self.flagged is None):
            raise ValueError("outcome 'scored' needs a score and a flag")
        return self

    @property
    def localised(self) -> bool:
        """Whether the spans say where; those of a reply that is flagged without any do not."""
        return self.spans is not None and (bool(self.spans) or not self.flagged)


class Verdict(Judgement):
    """A judgement and what it is about: a line of `verdicts.jsonl`."""

    conversation: str
    """Identifier of the conversation."""
    turn: Count
    """Index of the turn judged."""
    detector: str
    """Name of the detector."""
    version: str
    """Hash of the detector's configuration, prompts included; resuming goes by it."""


@runtime_checkable
class Retriever(Protocol):
    """Something that can be searched for evidence."""

    async def search(self, query: str, k: int) -> tuple[Passage, ...]:
        """The `k` passages nearest to `query`, best first."""
        ...


class TurnView(Frozen):
    """All that a detector sees of a turn: no gold label, no chatbot name.

    >>> fees = Passage(id="fees#0", document="fees", text="The fee is Rs 200.")
    >>> said = Message(role="user", text="I want to complain.")
    >>> view = TurnView(history=(said,), question="What is the fee?", passages=(fees,), reply="It is Rs 500.")
    >>> print(view.user_text)
    I want to complain.
    What is the fee?
    """

    history: tuple[Message, ...] = ()
    """The dialogue before this turn, oldest first."""
    question: str
    """The user's message that the reply answers."""
    passages: tuple[Passage, ...]
    """The evidence the chatbot was given."""
    reply: str
    """The text under judgement."""
    knowledge: Retriever | None = None
    """For more evidence; None when only `passages` exist (labelled data)."""

    @property
    def user_text(self) -> str:
        """Every message of the user up to the reply, one a line."""
        return "\n".join([*(one.text for one in self.history if one.role == "user"), self.question])
