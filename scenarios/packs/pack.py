"""The content of a scenario pack: a folder with a `scenario.yaml`, documents and personas.

docs/scenario-packs.md describes the files. A pack is only data; nothing in it is executed.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Literal, Self, get_args

from pydantic import AfterValidator, Field, PlainValidator, field_validator, model_validator

from hallulab.scenarios.packs.goals import GoalLabel, split_labels
from hallulab.scenarios.text.languages import NAMES, UNKNOWN
from hallulab.scenarios.transcript import Frozen, is_unset

Identifier = Annotated[str, Field(pattern=r"^[a-z0-9][a-z0-9-]*$")]
"""Small letters, digits and hyphens; safe in file names and keys."""


def _check_language(code: str) -> str:
    if code not in NAMES or code == UNKNOWN:
        known = ", ".join(sorted(name for name in NAMES if name != UNKNOWN))
        raise ValueError(f"must be a code of ISO 639-1 such as de or hi, one of {known}")
    return code


Language = Annotated[str, AfterValidator(_check_language)]
"""A language, by its code of ISO 639-1."""

Reading = Literal["word", "probability"]
"""Source of a detector's scores: printed words, as in MetaRAG's paper, or probabilities."""


def _is_share(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and 0 <= value <= 1


def read_threshold(
    value: Any, *, allowed: str = "or one for each reading, such as {word: 0.3, probability: 0.49}"
) -> float | dict[Reading, float]:
    """Return a number from 0 to 1, or one for each reading.

    Raises:
        ValueError: it is neither; names what is `allowed` beside a number.
    """
    if _is_share(value):
        return float(value)
    by_reading = isinstance(value, Mapping) and set(value) == set(get_args(Reading))
    if not by_reading or not all(map(_is_share, value.values())):
        raise ValueError(f"must be a number from 0 to 1, {allowed}")
    return {reading: float(number) for reading, number in value.items()}


TopicThreshold = Annotated[float | Mapping[Reading, float], PlainValidator(read_threshold)]
"""A threshold from 0 to 1, or one for each reading. Scores of printed words are multiples of 1/8 with the
paper's four variants, so a threshold that was fitted to probabilities means another thing there."""


def choose_threshold(given: float | Mapping[Reading, float], reading: Reading) -> float:
    """Return the threshold for scores that are made so.

    >>> choose_threshold({"word": 0.3, "probability": 0.49}, "word")
    0.3
    """
    return given[reading] if isinstance(given, Mapping) else given


class Specialist(Frozen):
    """One of the role agents that AgentBot's receptionist can route to."""

    name: str = Field(min_length=1)
    """`paralegal`, `lawyer`, `drafter` …; lower case, one word."""
    title: str
    """The role's name in prompts."""
    duty: str
    """Its duty: the receptionist chooses by it, and it is part of the specialist's instructions."""


class Document(Frozen):
    """A knowledge document before it is cut into passages."""

    name: str
    """File name without suffix; the `document` of its passages."""
    title: str
    """Shown to people and put before each passage."""
    source: str
    """Where the facts come from: an Act and section, a regulation, a portal."""
    topic: str | None = None
    """Topic label, which identity-aware thresholds use (MetaRAG section 3.6)."""
    sector: str | None = None
    """Consumer sector or similar grouping."""
    text: str
    """The body, without front matter."""


class ScriptedMessage(Frozen):
    """A message of a scripted user: a text, or one of two by a detector's verdict on the reply before."""

    text: str | None = Field(default=None, min_length=1)
    """The message; in YAML it may stand alone."""
    by: str | None = Field(default=None, min_length=1)
    """The detector that decides, by its name in the experiment. Without a verdict the conversation fails."""
    flagged: str | None = Field(default=None, min_length=1)
    """The message if the detector flags the reply."""
    unflagged: str | None = Field(default=None, min_length=1)
    """The message if it does not."""
    goal: str | None = Field(default=None, exclude_if=is_unset)
    """The goal that the message is about, one of the persona's; None: not said."""

    @model_validator(mode="before")
    @classmethod
    def _a_text_alone(cls, value: Any) -> Any:
        return {"text": value} if isinstance(value, str) else value

    @model_validator(mode="after")
    def _one_of_two_forms(self) -> Self:
        branch = (self.by, self.flagged, self.unflagged)
        if (self.text is None) is any(part is None for part in branch):
            raise ValueError("give a text, or all of `by`, `flagged` and `unflagged`")
        return self


_AS_SCRIPTED = "As the script says."


class Persona(Frozen):
    """A simulated user: who they are and what they want; or a scripted one: what they say."""

    id: Identifier
    name: str
    sector: str | None = None
    grievance: str
    """The case, in the third person."""
    goals: tuple[str, ...] = Field(min_length=1)
    facts: tuple[str, ...] = ()
    """Facts that the person knows and gives if asked: names, dates, amounts."""
    manner: str
    summary: str
    """Summary of a reference chat: the simulated user's situation (HalluDetect B.9)."""
    messages: tuple[ScriptedMessage, ...] = ()
    """Messages of the user, one after the other, without a model; empty: a model plays the user."""
    labels: tuple[GoalLabel | None, ...] = ()
    """Label of each goal, None without one; empty: none has one. In YAML it stands with its goal."""

    def described(self) -> dict[str, Any]:
        """Return the persona as JSON, as far as it decides a conversation.

        An empty script is left out, because most have none; so are labels, which only reports read.
        """
        return self.model_dump(mode="json", exclude={"labels", *(() if self.messages else ("messages",))})

    @model_validator(mode="before")
    @classmethod
    def _labels_stand_with_goals(cls, values: Any) -> Any:
        if not isinstance(values, dict) or not isinstance(values.get("goals"), list):
            return values
        goals, labels = split_labels(values["goals"])
        return {**values, "goals": goals, **({"labels": labels} if labels else {})}

    @model_validator(mode="before")
    @classmethod
    def _scripted_needs_no_more(cls, values: Any) -> Any:
        """A script says all. Fields that a persona needs otherwise may be left out."""
        if not isinstance(values, dict) or not values.get("messages"):
            return values
        told = dict.fromkeys(("grievance", "manner", "summary"), _AS_SCRIPTED)
        return {"name": values.get("id"), "goals": (_AS_SCRIPTED,), **told, **values}

    @field_validator("goals")
    @classmethod
    def _goals_differ(cls, goals: tuple[str, ...]) -> tuple[str, ...]:
        for number, goal in enumerate(goals, start=1):
            if not goal.strip():
                raise ValueError(f"goal {number} is blank")
            if goal in goals[: number - 1]:
                raise ValueError(f"goal {number} stands there twice: {goal!r}")
        return goals

    @field_validator("messages")
    @classmethod
    def _a_reply_comes_first(cls, messages: tuple[ScriptedMessage, ...]) -> tuple[ScriptedMessage, ...]:
        if messages and messages[0].text is None:
            raise ValueError("the first message comes before any reply, so it must be a text")
        return messages

    @model_validator(mode="after")
    def _labels_fit(self) -> Self:
        if self.labels and len(self.labels) != len(self.goals):
            raise ValueError(f"has {len(self.labels)} labels for {len(self.goals)} goals")
        return self

    @model_validator(mode="after")
    def _messages_are_about_goals(self) -> Self:
        for number, message in enumerate(self.messages, start=1):
            if message.goal is not None and message.goal not in self.goals:
                raise ValueError(
                    f"`goal` of message {number} is none of the goals of persona {self.id}; write it as in "
                    "`goals`"
                )
        return self


class Scenario(Frozen):
    """A loaded scenario pack."""

    name: Identifier
    title: str
    description: str
    """One or two sentences for `hallulab list scenarios`."""
    domain: str
    """The chatbots' subject, in the words of a prompt: `consumer law in India`."""
    assistant: str
    """The assistant's task, in the words of a prompt: `help consumers with grievances`."""
    licence: str | None = None
    """Licence of documents and personas; None: it does not say."""
    language: str | None = None
    """Language that the personas write (ISO 639-1); None: English."""
    functions: tuple[str, ...] = ()
    """The assistant's core functions, one line each."""
    specialists: tuple[Specialist, ...] = Field(min_length=1)
    identity_thresholds: dict[str, TopicThreshold] = Field(default_factory=dict)
    """Topic label → MetaRAG threshold, for topics that need a stricter one (τ_identity = 0.3)."""
    documents: tuple[Document, ...]
    """The knowledge documents; imported chats may have none."""
    personas: tuple[Persona, ...]
    """The simulated users; imported chats have none."""
