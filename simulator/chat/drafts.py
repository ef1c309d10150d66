"""A reply while it is made: what the chatbot does, and the text that it has written so far."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

from hallulab.agents.models.watching import CallProgress
from hallulab.simulator.records.experiment import Component

_WRITING = "Writing"

_DOING: Mapping[str, str] = {
    "reformulate": "Searching the documents",
    "route": "Choosing who answers",
    "courtesy": _WRITING,
    "generate": _WRITING,
    "answer": _WRITING,
    "reply": _WRITING,
    "split": "Listing the claims of the draft",
    "verify": "Checking claims",
    "process": "Correcting the draft",
    "edit": "Editing the draft",
    "guard.topic": "Finding out what it is about",
}
"""Step of a call's purpose → the activity of the chatbot, in words."""

_HIDDEN = frozenset({"reformulate", "route", "split", "verify", "edit", "guard.topic"})
"""Steps whose text is not for the user."""

_COURTESY = frozenset({"courtesy"})
_LAST: Mapping[str, frozenset[str]] = {
    "vanilla": _COURTESY | {"generate"},
    "prompt-engineered": _COURTESY | {"generate"},
    "editor": _COURTESY,
    "fact-checker": _COURTESY | {"process"},
    "agent": _COURTESY | {"answer"},
    "endpoint": frozenset({"reply"}),
}
"""Kind of chatbot → the steps whose text is the reply. Of other kinds we do not know."""

_THOUGHTS = ("<think>", "</think>")


@dataclass(frozen=True)
class ReplyDraft:
    """A reply in the making."""

    doing: str
    text: str = ""
    is_reply: bool = False
    """True if this text becomes the reply. Else it may still be changed, or replaced."""


class DraftFollower:
    """Follows one reply by the calls of its chatbot."""

    def __init__(self, bot: Component, report: Callable[[ReplyDraft], None]) -> None:
        # With this strategy a draft holds the steps to its conclusion, which alone is the reply.
        concludes = bot.options.get("strategy") == "verify"
        self._last = _COURTESY if concludes else _LAST.get(bot.kind, frozenset())
        self._report = report
        self._draft = ReplyDraft("")

    def follow(self, progress: CallProgress) -> None:
        """Take in how far a call is."""
        role, _, step = (progress.purpose or "").partition(".")
        if role in ("", "chatbot"):
            doing = _DOING.get(step, f"Working: {step}") if step else _WRITING
        else:
            doing = "Judging the draft"
        draft = replace(self._draft, doing=doing)
        if progress.text is not None and role in ("", "chatbot") and step not in _HIDDEN:
            text = cut_thoughts(progress.text)
            draft = ReplyDraft("Thinking" if text is None else doing, text or "", step in self._last)
        if draft != self._draft:
            self._draft = draft
            self._report(draft)


def cut_thoughts(text: str) -> str | None:
    """Return what a model says behind its reasoning; None while it reasons.

    >>> cut_thoughts("<think>Is it 7? Yes.</think> It opens at 7.")
    'It opens at 7.'
    >>> cut_thoughts("<think>Is it") is None
    True
    """
    begin, end = _THOUGHTS
    _, ended, said = text.rpartition(end)
    if not ended and text.lstrip().startswith(begin):
        return None
    return said.lstrip() if ended else text
