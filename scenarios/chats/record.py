"""Data of a conversation beside its messages, in the files that `hallulab export` writes.

Formats of other tools have place for the messages only. The rest stands under a key of its own, `hallulab`,
which these tools ignore, so that an import of the file makes the same conversation.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple, Self

from pydantic import Field, ValidationError, field_validator

from hallulab.scenarios.chats.reading import Reading
from hallulab.scenarios.chats.turns import TOPIC
from hallulab.scenarios.chats.values import FormatError
from hallulab.scenarios.files.data_files import choose_main_error, explain_error
from hallulab.scenarios.files.json_text import parse_json
from hallulab.scenarios.transcript import (
    Branch,
    Conversation,
    Count,
    Evidence,
    Frozen,
    Judgement,
    Message,
    Seed,
    Step,
    StopReason,
    Turn,
    Verdict,
    is_unset,
)

KEY = "hallulab"

SCENARIO = "imported"
"""Scenario of conversations whose file names none."""

CHATBOT = "imported"
"""Chatbot of conversations whose file names none."""

MODEL = "unknown"

PARTS = ("passages", "steps", "spans")
"""Parts that an export can leave out."""

_SAME = {"scenario", "chatbot", "model", "seed", "stop_reason", "error"}
"""Fields that a conversation and its context share, as they are."""

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*")


class DetectedSpan(Frozen):
    """A hallucination that a detector found in a reply."""

    detector: str
    start: Count | None
    """First character in the reply; None: it has no place there."""
    end: Count | None
    """One past the last character, or None like `start`."""
    text: str


class Marked(NamedTuple):
    """A conversation, and the hallucinations in it, as far as it was judged."""

    conversation: Conversation
    marks: Mapping[int, Sequence[DetectedSpan]]
    """Index of a turn → the hallucinations in its reply. A turn that is not judged is missing: a detector
    failed on it, abstained, did not say where, or was not asked, and none that was found anything."""
    verdicts: Sequence[Verdict] = ()
    """All verdicts on it, of the detectors whose marks these are."""


class KeptVerdict(Judgement):
    """A verdict in the turn that it is about."""

    detector: str
    version: str

    @classmethod
    def of(cls, verdict: Verdict) -> Self:
        """Return a verdict without its place."""
        return cls.model_validate(verdict.model_dump(exclude={"conversation", "turn"}))

    def at(self, conversation: Conversation, turn: Turn) -> Verdict:
        """Return the verdict with its place."""
        return Verdict(**self.model_dump(), conversation=conversation.id, turn=turn.index)


class BranchOrigin(Frozen):
    """The conversation that this one branches off from, and the turn."""

    conversation: str
    turn: Count


class TurnAbout(Frozen):
    """Data of a turn beside its messages."""

    query: str | None = None
    passages: Evidence = ()
    steps: tuple[Step, ...] = ()
    spans: tuple[DetectedSpan, ...] | None = None
    """None: not judged, or left out."""
    verdicts: tuple[KeptVerdict, ...] = ()
    goal: str | None = Field(default=None, exclude_if=is_unset)
    act: str | None = Field(default=None, exclude_if=is_unset)

    @field_validator("verdicts", mode="before")
    @classmethod
    def _parse_cell(cls, value: Any) -> Any:
        # A cell of a table has them as a text.
        return parse_json(value) if isinstance(value, str) else value


class ChatContext(Frozen):
    """Data of a conversation beside its messages."""

    id: str | None = Field(default=None, min_length=1)
    scenario: str = SCENARIO
    persona: str | None = None
    chatbot: str = CHATBOT
    model: str = MODEL
    seed: Seed = 0
    stop_reason: StopReason = "unknown"
    error: str | None = None
    branch: BranchOrigin | None = None
    turns: tuple[TurnAbout, ...] | None = None


def build_chat_context(marked: Marked, without: frozenset[str] = frozenset()) -> ChatContext:
    """Return what a conversation has beside its messages.

    Args:
        without: those of `PARTS` that are left out.
    """
    one = marked.conversation
    verdicts = defaultdict[int, list[KeptVerdict]](list)
    for verdict in marked.verdicts:
        verdicts[verdict.turn].append(KeptVerdict.of(verdict))
    return ChatContext(
        **one.model_dump(include={*_SAME, "id", "persona"}),
        branch=None
        if one.branch is None
        else BranchOrigin(conversation=one.branch.conversation, turn=one.branch.turn),
        turns=tuple(
            TurnAbout(
                query=turn.query,
                passages=() if "passages" in without else turn.passages,
                steps=() if "steps" in without else turn.steps,
                spans=None
                if "spans" in without or turn.index not in marked.marks
                else tuple(marked.marks[turn.index]),
                verdicts=() if "spans" in without else tuple(verdicts[turn.index]),
                goal=turn.goal,
                act=turn.act,
            )
            for turn in one.turns
        ),
    )


def read_about(value: Any) -> ChatContext:
    """Read what stands under the key: an object, perhaps as a text.

    Raises:
        FormatError: it was changed, and does not fit.
    """
    try:
        return ChatContext.model_validate(parse_json(value) if isinstance(value, str) else value)
    except ValidationError as error:
        first = choose_main_error(error)
        place = ".".join(map(str, (KEY, *first["loc"])))
        raise FormatError(
            f"{place}: {explain_error(first)}. Correct it, or delete the key `{KEY}`."
        ) from error
    except ValueError as error:
        raise FormatError(f"{KEY}: not valid JSON ({error}). Correct it, or delete the key.") from error


def build_conversation(turns: Sequence[Turn], about: ChatContext, name: str) -> Conversation:
    """Make a conversation.

    Args:
        turns: those of its messages.
        about: what it has besides.
        name: its identifier, if it has none.

    Raises:
        FormatError: both do not fit together, or the chatbot's name is none.
    """
    if not _NAME.fullmatch(about.chatbot):
        raise FormatError(
            f"the chatbot's name {about.chatbot!r} has other signs than letters, digits, `.`, `_` and `-`. "
            "Rename it."
        )
    given = about.branch.turn if about.branch else 0
    if given > len(turns):
        raise FormatError(
            f"{KEY}.branch.turn: is {given}, and the messages make {len(turns)} turns. Restore them."
        )
    own = [turn.model_copy(update={"index": index}) for index, turn in enumerate(turns[given:])]
    if about.turns is not None:
        if len(about.turns) != len(own):
            raise FormatError(
                f"{KEY}.turns: has {len(about.turns)} turns, and the messages make {len(own)}. "
                f"Restore the messages, or delete the key `{KEY}`."
            )
        own = [
            turn.model_copy(
                update={
                    "query": beside.query,
                    "passages": beside.passages,
                    "steps": beside.steps,
                    "goal": beside.goal,
                    "act": beside.act,
                }
            )
            for turn, beside in zip(own, about.turns, strict=True)
        ]
    id, branch = about.id or name, None
    if about.branch is not None:
        history = tuple(message for turn in turns[:given] for message in turn.messages)
        branch = Branch(conversation=about.branch.conversation, turn=given, history=history)
    same = about.model_dump(include=_SAME)
    return Conversation(**same, id=id, persona=about.persona or id, branch=branch, turns=tuple(own))


def build_own_conversation(
    turns: Sequence[Turn], about: ChatContext, name: str, reading: Reading
) -> Conversation:
    """Make a conversation that we exported, and add its verdicts to those of the reading.

    Args:
        turns: as for `build_conversation`; so are `about` and `name`.
        reading: keeps the verdicts.

    Raises:
        FormatError: its parts do not fit together.
    """
    one = build_conversation(turns, about, name)
    verdicts = [
        verdict.at(one, turn)
        for turn, beside in zip(one.turns, about.turns or (), strict=False)
        for verdict in beside.verdicts
    ]
    reading.verdicts.setdefault(one.id, verdicts)
    return one


def list_messages(conversation: Conversation) -> list[Message]:
    """Return all messages of a conversation, given ones included."""
    return list(conversation.history(len(conversation.turns)))


def add_topic(turns: Sequence[Turn], topic: Any) -> tuple[Turn, ...]:
    """Return the turns with the topic that a file gives for all of them; None: it gives none."""
    if topic in (None, ""):
        return tuple(turns)
    step = Step(name=TOPIC, text=str(topic))
    return tuple(turn.model_copy(update={"steps": (*turn.steps, step)}) for turn in turns)
