"""Record of a guarded reply: the step from which audit log and report are made."""

from __future__ import annotations

from typing import Literal

from pydantic import ValidationError

from hallulab.scenarios.transcript import Frozen, Number, Outcome, Span, Turn

STEP = "guard_record"
"""Name of the step that holds a `GuardRecord` in JSON."""

CALLS = "chatbot.guard."
"""How the purposes of the guard's own calls begin; those of the first draft are as the wrapped bot made
them."""

JUDGING, AGAIN = f"{CALLS}judge.", f"{CALLS}again."
"""How the purposes begin of the detector's calls, and of those for a reply that is made again."""

Action = Literal["passed", "marked", "cured", "abstained", "human", "unjudged"]
"""Outcome: nothing done; shown with marks; made again and not flagged any more; withheld; handed to a human;
shown though it could not be judged."""


class Attempt(Frozen):
    """A reply of the wrapped bot, judged."""

    reply: str | None
    """Its text; None if it failed."""
    outcome: Outcome | None
    """The detector's outcome; None without a reply."""
    score: Number | None = None
    flagged: bool | None = None
    """True if the policy flags it; None: it was not judged."""
    spans: tuple[Span, ...] | None = None
    """The unsupported spans. None: not judged, or not localised."""
    error: str | None = None
    """Why the bot or the detector failed, or why the detector abstained."""


class GuardRecord(Frozen):
    """How a reply was guarded."""

    policy: str
    policy_digest: str
    detector: str
    topics: dict[str, str]
    """Topic → why it was tagged."""
    topics_error: str | None = None
    """Why the model that tags gave no answer; the reply then counts as on a sensitive topic."""
    sensitive: bool
    """True if the ladder of sensitive topics applied."""
    threshold: Number | None
    """The threshold that applied; None: the detector's own decision, and it has none."""
    attempts: tuple[Attempt, ...]
    """The first draft, and the replies that were made again."""
    shown: int | None
    """Which of them the user saw, from 0; None: it was withheld."""
    action: Action
    reason: str
    marked: str | None = None
    """The flagged reply with its marks, as a human who takes over needs it; None if none was flagged."""

    @property
    def escalated(self) -> bool:
        """True if the user was refused an answer, or a human was called."""
        return self.action in ("abstained", "human")

    @property
    def refused(self) -> bool:
        """True if the user got no answer of the bot."""
        return self.shown is None


def record_of(turn: Turn) -> GuardRecord | None:
    """Return the record of a turn; None if no guard made it, or if it cannot be read."""
    for step in turn.steps:
        if step.name == STEP:
            try:
                return GuardRecord.model_validate_json(step.text)
            except ValidationError:
                return None
    return None
