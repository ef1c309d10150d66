"""The log of guarded chatbots, `audit.jsonl`: a line for each guarded reply, derived from the conversations.

MetaRAG section 3.6 asks for "logs of flagged spans, hallucination scores, and topic labels".
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from hallulab.agents.models.redaction import remove_keys
from hallulab.chatbots.guarded.record import Action, Attempt, record_of
from hallulab.scenarios.files.atomic import write_atomically
from hallulab.scenarios.transcript import Conversation, Count, Frozen, Number
from hallulab.simulator.records.folder import RunFolder


class GuardLine(Frozen):
    """A line of the log: what was done about a reply, and why."""

    conversation: str
    turn: Count
    chatbot: str
    detector: str
    policy: str
    policy_digest: str
    topics: dict[str, str]
    """Topic → why it was tagged."""
    sensitive: bool
    """True if the ladder of sensitive topics applied."""
    threshold: Number | None
    attempts: tuple[Attempt, ...]
    """Score and flagged spans of the first draft, and of later replies; without their text."""
    action: Action
    escalated: bool
    """True if the reply was withheld, or a human was called."""
    reason: str


def iterate_guard_lines(conversations: Iterable[Conversation]) -> Iterator[GuardLine]:
    """Yield a line for each guarded reply, in the order of the conversations."""
    for conversation in conversations:
        for turn in conversation.turns:
            record = record_of(turn)
            if record is None:
                continue
            values = {
                **record.model_dump(mode="json", include={*GuardLine.model_fields}),
                "attempts": [{**one.model_dump(mode="json"), "reply": None} for one in record.attempts],
                "escalated": record.escalated,
                "conversation": conversation.id,
                "turn": turn.index,
                "chatbot": conversation.chatbot,
            }
            yield GuardLine.model_validate(_clean(values))


def write_guard_log(folder: RunFolder) -> None:
    """Write the log of a run folder; no file if no reply was guarded.

    Raises:
        UsageError: the journal of conversations is damaged.
        OperationalError: the file cannot be written.
    """
    text = "".join(f"{line.model_dump_json()}\n" for line in iterate_guard_lines(folder.read_conversations()))
    if text:
        write_atomically(folder.audit, text)


def _clean(value: Any) -> Any:
    """Return a JSON value without the keys (secrets) that its texts may quote."""
    if isinstance(value, str):
        return remove_keys(value)
    if isinstance(value, list):
        return [_clean(item) for item in value]
    return {name: _clean(item) for name, item in value.items()} if isinstance(value, dict) else value
