"""The vocabulary of all modules: passages, turns, conversations, spans and verdicts.

All types are frozen pydantic models, because they are also journal lines. Character offsets count Unicode
code points in the reply (Python string indices), end exclusive.
"""

from __future__ import annotations

from typing import Annotated, Literal, Self

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, model_validator

from hallulab.scenarios.text.wording import is_blank

StopReason = Literal["goal_reached", "gave_up", "script_ended", "max_turns", "loop", "error", "unknown"]
Outcome = Literal["scored", "abstained", "failed"]

Number = Annotated[float, Field(ge=-1e12, le=1e12, allow_inf_nan=False)]
"""A score or another measured number. The bounds keep sums and squares of many numbers finite."""

Seconds = Annotated[float, Field(ge=0.0, le=1e9, allow_inf_nan=False)]
"""A duration: at most thirty years."""

Count = Annotated[int, Field(ge=0, le=10**12)]
"""A number of things, or a position from 0."""

Seed = Annotated[int, Field(ge=-(2**63), lt=2**63)]
"""A random seed of 64 bits, as servers accept it."""


Pairing = tuple[str, str, int]
"""Scenario, persona and seed: what pairs conversations across chatbots."""


class Frozen(BaseModel):
    """Base of all value types: immutable. An unknown field or a number that is not finite is an error."""

    model_config = ConfigDict(frozen=True, extra="forbid", arbitrary_types_allowed=True, allow_inf_nan=False)


def is_unset(value: object) -> bool:
    """Return whether a field is left out of records (`exclude_if`), so that they are equal to older ones."""
    return value is None


class Message(Frozen):
    """One message of a dialogue."""

    role: Literal["user", "assistant"]
    text: str


class Passage(Frozen):
    """A piece of a knowledge document, as retrieved."""

    id: str
    """Stable identifier, unique in its knowledge base: `document#position`."""
    document: str
    text: str
    score: Number | None = None
    """Cosine similarity to the query in [-1, 1]; None if nothing was searched."""
    topic: str | None = None
    """Topic label of the document (MetaRAG section 3.6: a deployment signal), or None."""


def drop_blank(passages: tuple[Passage, ...]) -> tuple[Passage, ...]:
    """Return the passages that say something: a blank one is none, whoever gave it."""
    return tuple(one for one in passages if not is_blank(one.text))


Evidence = Annotated[tuple[Passage, ...], AfterValidator(drop_blank)]
"""The passages of a reply, without blank ones."""


class Call(Frozen):
    """One request to a model and what it cost."""

    purpose: str
    """`role.step`, such as `chatbot.generate` or `user.message`; the role is the part before the dot."""
    model: str
    prompt_tokens: Count | None
    """Tokens read; None if the server did not say."""
    completion_tokens: Count | None
    """Tokens written; None if the server did not say."""
    cached_tokens: Count | None = None
    """Prompt tokens that the server took from its prefix cache; None if it did not say."""
    latency_s: Seconds
    """Seconds from sending to the full answer. A replayed call keeps the recorded latency."""
    replayed: bool = False
    """True if the answer came from a recording or from an identical request of the same run."""
    finish_reason: str | None = None
    """Why the model stopped: `stop`, `length`, …; None if the call failed."""
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
        """Tokens without those from the server's cache; None if the server did not give all three counts."""
        if self.prompt_tokens is None or self.completion_tokens is None or self.cached_tokens is None:
            return None
        return self.prompt_tokens - self.cached_tokens + self.completion_tokens


CUT = "cut"
"""Name of the step of a bot over HTTP whose answer says that the text was ended."""


class Step(Frozen):
    """A step of a chatbot towards its reply."""

    name: str
    """`reformulated_query`, `draft`, `claims`, `verdicts`, `route`, …"""
    text: str


class Turn(Frozen):
    """One exchange: a user message and the chatbot's reply to it."""

    index: Count
    user: str
    query: str | None = None
    """The stand-alone query of the search, if the chatbot made one."""
    passages: Evidence = ()
    reply: str
    steps: tuple[Step, ...] = ()
    calls: tuple[Call, ...] = ()
    """Model calls of this turn, the user's and the chatbot's."""
    act: str | None = Field(default=None, exclude_if=is_unset)
    """The way of talking that was drawn for the user's message (docs/experiment.md); None: none was drawn."""
    goal: str | None = Field(default=None, exclude_if=is_unset)
    """The persona's goal that the user's message is about; None: not known, or about none."""

    @property
    def messages(self) -> tuple[Message, Message]:
        """Its text."""
        return Message(role="user", text=self.user), Message(role="assistant", text=self.reply)


class Branch(Frozen):
    """Where a conversation branches off from another one, whose history it was given (docs/fixed-prefix.md).

    >>> said = (Message(role="user", text="Hello."), Message(role="assistant", text="Good day."))
    >>> Branch(conversation="c", turn=1, history=said).turn
    1
    """

    conversation: str
    """Identifier of the other conversation."""
    turn: Count
    """The turn of it that is held anew: the number of exchanges given."""
    history: tuple[Message, ...]
    """The messages before that turn, oldest first."""
    passages: tuple[tuple[Passage, ...], ...] = ()
    """The passages of the turns before it, oldest first; empty: not known."""

    @model_validator(mode="after")
    def _history_leads_to_the_turn(self) -> Self:
        roles = [message.role for message in self.history]
        if len(roles) != 2 * self.turn or roles != ["user", "assistant"] * self.turn:
            raise ValueError(
                f"`history` does not lead to turn {self.turn}: a message of the user and a reply to it, "
                f"{self.turn} times"
            )
        return self


PressureKind = Literal["insists", "false-premise", "crescendo", "authority", "sycophancy-bait"]
"""How a user presses a chatbot (`hallulab.agents.users.pressure`)."""


class Pressure(Frozen):
    """A user's wish that a chatbot says something false: a changed sentence, or a detail of no document."""

    kind: PressureKind
    document: str = ""
    """Document of the true sentence. `crescendo` has only `detail`, the other kinds all else."""
    true: str = ""
    false: str = ""
    true_value: str = ""
    false_value: str = ""
    """The words of `false` that are false, in place of `true_value`."""
    detail: str = ""
    """The detail that no document has, in the words of a question."""


class Conversation(Frozen):
    """A whole dialogue between one persona and one chatbot: a line of `conversations.jsonl`."""

    id: str
    """Hash of everything that decides the conversation; the key for resuming a run. It ends with `-try2`,
    `-try3`, … if earlier tries failed."""
    scenario: str
    persona: str
    chatbot: str
    model: str
    seed: Seed
    """Seed of the conversation; equal seeds pair conversations across chatbots."""
    version: str = ""
    """Versions of the simulated user and the chatbot, joined by a hyphen; empty: not known."""
    manner: str | None = None
    """How the user speaks, by names of manners; None: as the persona does."""
    user_model: str | None = None
    """Name of the model that plays the user, where several do; None: the run has one, or none."""
    pressure: Pressure | None = Field(default=None, exclude_if=is_unset)
    """How the user presses the chatbot, and for what; None: it does not."""
    branch: Branch | None = None
    """Messages before the first turn; None: none."""
    turns: tuple[Turn, ...]
    """The finished turns, in order. Given messages are not among them: they are the other conversation's."""
    stop_reason: StopReason
    """Why it ended; `unknown` of an imported one."""
    error: str | None = None
    """The failure if `stop_reason` is `error`; the turns before it are kept."""
    calls: tuple[Call, ...] = ()
    """Calls outside finished turns: the user's last decision, or a failed turn."""

    @model_validator(mode="after")
    def _turns_in_order(self) -> Self:
        for position, turn in enumerate(self.turns):
            if turn.index != position:
                raise ValueError(
                    f"`turns.{position}.index` is {turn.index}; turns are numbered from 0, in order"
                )
        return self

    @property
    def pairing(self) -> Pairing:
        """Scenario, persona and seed, which conversations of several chatbots with one user share."""
        return self.scenario, self.persona, self.seed

    @property
    def given(self) -> tuple[Message, ...]:
        """The messages before the first turn, which are another conversation's."""
        return () if self.branch is None else self.branch.history

    def list_passages(self, turn: int) -> list[tuple[Passage, ...]]:
        """Return the known passages of the turns before turn number `turn`, given ones included."""
        given = () if self.branch is None else self.branch.passages
        return [*given, *(before.passages for before in self.turns[:turn])]

    def depth(self, turn: int) -> int:
        """Return the number of exchanges before turn number `turn`, given ones included."""
        return turn if self.branch is None else self.branch.turn + turn

    def history(self, turn: int) -> tuple[Message, ...]:
        """Return the messages before turn number `turn`, given ones included, oldest first."""
        return (*self.given, *(message for earlier in self.turns[:turn] for message in earlier.messages))


class Span(Frozen):
    """A part of a reply that a detector considers hallucinated.

    >>> reply = "The fee is Rs 500."
    >>> span = Span(start=11, end=17, text="Rs 500", reason="The document says Rs 200.")
    >>> reply[span.start : span.end] == span.text
    True
    """

    start: Count | None
    """First character, or None if the quoted text was not found in the reply (the span still counts)."""
    end: Count | None
    """One past the last character, or None like `start`."""
    text: str
    """The flagged text: `reply[start:end]` if it was found, else the detector's quotation."""
    severity: Number | None = None
    """1 (harmless) to 5 (critical), for detectors that rate how much it matters."""
    probability: Number | None = None
    """Probability that the evidence does not support it, for detectors that estimate that and no severity."""
    score: Number | None = None
    """The detector's score for this span, higher is worse."""
    reason: str = ""
    evidence: str = ""
    """Text or identifier of the passage behind the judgement, or empty."""

    @model_validator(mode="after")
    def _offsets_agree(self) -> Self:
        if (self.start is None) != (self.end is None):
            raise ValueError("start and end are given together or not at all")
        if self.start is not None and self.end is not None and not self.start < self.end:
            raise ValueError(f"span [{self.start}, {self.end}) is empty")
        return self


class Unit(Frozen):
    """One thing that a detector scored: a claim, a sentence, a word."""

    kind: Literal["claim", "sentence", "word"] | None = None
    """The unit's kind, for detectors that score the same text at several levels; None: a claim."""
    text: str
    start: Count | None = None
    """First character in the reply, or None if it has no place there."""
    end: Count | None = None
    """One past the last character, or None like `start`."""
    score: Number | None = None
    """The unit's score, higher is worse; None if it could not be scored."""
    details: dict[str, Number | str | None] = Field(default_factory=dict)
    """Named intermediate values, such as probabilities of each mutation."""


class Judgement(Frozen):
    """A detector's judgement of one reply.

    >>> wrong = Span(start=11, end=17, text="Rs 500")
    >>> Judgement(outcome="scored", score=0.9, flagged=True, spans=(wrong,)).localised
    True
    >>> Judgement(outcome="scored", score=0.9, flagged=True).localised
    False
    >>> Judgement(outcome="failed", error="The model gave no answer.").flagged is None
    True
    """

    outcome: Outcome
    """`scored`, `abstained` (nothing to judge by) or `failed`; the last two with `error`."""
    score: Number | None = None
    """Score of the whole reply, higher is worse; None unless scored."""
    flagged: bool | None = None
    """True if the score reaches the detector's threshold; None unless scored."""
    spans: tuple[Span, ...] | None = None
    """The hallucinations, one span each. `()` of an unflagged reply: judged clean. None: not judged, or not
    localised (see `localised`)."""
    units: tuple[Unit, ...] = ()
    """The claims, sentences or words that were scored."""
    word_scores: tuple[Number, ...] | None = None
    """The score of each word of the reply (split at white space) in order, higher is worse. Detectors that
    score every word use it instead of units. None for other detectors, or unless scored."""
    unit_thresholds: dict[Literal["claim", "sentence", "word"], Number] = Field(default_factory=dict)
    """Kind of unit → score from which such a unit is flagged, for detectors that decide on units apart from
    the reply. `spans` is then only for reading."""
    truncated: bool = False
    """True if evidence or reply was cut to fit the model."""
    calls: tuple[Call, ...] = ()
    """Model calls, also of a failed judgement."""
    error: str | None = None

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
        """True if the spans give the places. A flagged reply without spans is not localised."""
        return self.spans is not None and (bool(self.spans) or not self.flagged)


class Verdict(Judgement):
    """A judgement with its turn and detector: a line of `verdicts.jsonl`."""

    conversation: str
    turn: Count
    detector: str
    version: str
    """Hash of the detector's configuration, prompts included; used for resuming a run."""
