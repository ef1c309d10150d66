"""A guard's record in words, for the reader of a conversation and of the audit log."""

from __future__ import annotations

from collections.abc import Sequence

from hallulab.chatbots.guarded.record import Action, Attempt, GuardRecord
from hallulab.chatbots.guarded.topics import Tags

DONE: dict[Action, str] = {
    "passed": "shown as it is",
    "marked": "shown with marks",
    "cured": "made again and shown",
    "abstained": "withheld",
    "human": "handed to a human",
    "unjudged": "shown without a judgement",
}
"""Action → words."""


def format_threshold(threshold: float | None) -> str:
    """Return a threshold in words."""
    return "the detector's own threshold" if threshold is None else f"τ = {threshold:.2f}"


def word_escalation(attempts: Sequence[Attempt], threshold: float | None, tags: Tags) -> str:
    """Say why a reply is flagged, what is unsupported in it, and what became of it when it was made again."""
    first = attempts[0]
    about = f" on the topic {', '.join(tags.found)}" if tags.found else ""
    about += " (the topic is not known, so it counts as sensitive)" if tags.error else ""
    quoted = ", ".join(f"“{span.text}”" for span in first.spans or ())
    said = f"H = {first.score:.2f} reaches {format_threshold(threshold)}{about}"
    said += f": unsupported is {quoted}" if quoted else ""
    again = [_again(attempt) for attempt in attempts[1:]]
    return f"{said}; made again, {' and then '.join(again)}" if again else said


def _again(attempt: Attempt) -> str:
    if attempt.reply is None:
        return f"the chatbot failed ({attempt.error})"
    if attempt.score is None:
        return f"the reply could not be judged ({attempt.error})"
    return f"H = {attempt.score:.2f}"


def make_readable(record: GuardRecord) -> str:
    """Return a record in a few lines."""
    topics = [f"{name} ({why})" for name, why in record.topics.items()] or ["none"]
    lines = [
        f"policy {record.policy}, detector {record.detector}",
        f"topics: {', '.join(topics)}{' – sensitive' if record.sensitive else ''}",
    ]
    if record.topics_error:
        lines.append(f"the tagger failed: {record.topics_error}")
    lines.append(f"{DONE[record.action]}: {record.reason}")
    if record.marked is not None:
        lines.append(f"flagged: {record.marked}")
    return "\n".join(lines)
