"""The audit log of guarded chatbots, `audit.jsonl`: append-only, each line chained to the one before it.

A line holds the hash of the line before it and its own, so that an edited, removed or moved line is found.
Who can rewrite the whole file can also make a new chain: keep the last hash elsewhere (docs/safeguards.md).
MetaRAG section 3.6 asks for "logs of flagged spans, hallucination scores, and topic labels".
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from hallulab.agents.models.redaction import remove_keys
from hallulab.chatbots.guarded.record import Action, Attempt, GuardRecord, record_of
from hallulab.scenarios.errors import OperationalError, UsageError
from hallulab.scenarios.files.json_text import LineWriter, digest, read_lines
from hallulab.scenarios.transcript import Conversation, Count, Frozen, Number, Turn

FIRST = "0" * 64
"""What stands as the hash before the first line."""


class Entry(Frozen):
    """A line of the log: what was done about a reply, and why."""

    sequence: Count
    """Number of the line, from 0."""
    at: str | None
    """When the conversation was journalled, in UTC; None for a replay, which happened earlier."""
    conversation: str
    """Identifier of the conversation."""
    turn: Count
    """Index of the turn."""
    chatbot: str
    """Name of the chatbot in the experiment."""
    detector: str
    policy: str
    policy_digest: str
    topics: dict[str, str]
    """Topic → why it was tagged."""
    sensitive: bool
    """Whether the ladder of sensitive topics applied."""
    threshold: Number | None
    """The threshold that applied."""
    attempts: tuple[Attempt, ...]
    """Score and flagged spans of the first draft, and of the replies made again; without their text."""
    action: Action
    escalated: bool
    """Whether the reply was withheld, or a human was called."""
    reason: str
    record: str
    """Hash of the whole record in the journal of conversations."""
    previous: str
    hash: str
    """Hash of this line without this field."""


@dataclass
class Chain:
    """A log that was read and checked."""

    path: Path
    entries: list[Entry] = field(default_factory=list)

    @property
    def head(self) -> str:
        """The hash of the last line."""
        return self.entries[-1].hash if self.entries else FIRST


class BrokenChain(OperationalError):
    """A line of the log was edited, removed, added or moved."""


def read_chain(path: Path) -> Chain:
    """Read a log and check its chain; empty if there is no file.

    Raises:
        BrokenChain: a line does not fit; names the first one.
        UsageError: a line is no JSON, or no line of an audit log.
    """
    chain = Chain(path)
    for number, value in read_lines(path):
        chain.entries.append(_check_entry(value, chain, f"{path}, line {number}"))
    return chain


def _check_entry(value: Any, chain: Chain, place: str) -> Entry:
    try:
        entry = Entry.model_validate(value)
    except ValidationError as error:
        raise UsageError(
            f"{place}: this is no line of an audit log. Give the audit.jsonl of a run."
        ) from error
    if _hash_of(value) != entry.hash:
        raise BrokenChain(f"{place}: the line was edited after it was written: its hash does not fit.")
    if entry.previous != chain.head or entry.sequence != len(chain.entries):
        raise BrokenChain(
            f"{place}: the line does not follow the one before it: it is number {entry.sequence} where "
            f"{len(chain.entries)} is expected, so a line was removed, added or moved."
        )
    return entry


def _hash_of(value: dict[str, Any]) -> str:
    """Return the sha256 of a line's canonical JSON without its own hash, 64 hex digits."""
    rest = {name: item for name, item in value.items() if name != "hash"}
    text = json.dumps(rest, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    return hashlib.sha256(text.encode()).hexdigest()


def require_in_journal(chain: Chain, conversations: Iterable[Conversation]) -> None:
    """Check the log against the journal of conversations, which shows lines removed at its end, too.

    Raises:
        BrokenChain: a guarded reply of the journal is not in the log, or they differ.
    """
    logged = {(entry.conversation, entry.turn): entry for entry in chain.entries}
    for conversation, turn, record in _find_guarded_turns(conversations):
        entry = logged.get((conversation.id, turn.index))
        about = f"turn {turn.index} of conversation {conversation.id}"
        if entry is None:
            raise BrokenChain(
                f"{chain.path}: {about} is missing: lines were removed, or the run was killed before it "
                "wrote them (then the same command writes them)."
            )
        if entry.record != _digest_of(record):
            raise BrokenChain(
                f"{chain.path}, line {entry.sequence + 1}: it differs from {about} in the journal: that was "
                "edited."
            )


class AuditLog:
    """Appends to the log of a run; it is made when there is something to write.

    Args:
        path: the file.
        chain: its content, as `read_chain` checked it.
    """

    def __init__(self, path: Path, chain: Chain) -> None:
        self._path = path
        self._writer: LineWriter | None = None
        self._head, self._length = chain.head, len(chain.entries)
        self._logged = {(entry.conversation, entry.turn) for entry in chain.entries}

    def add(self, conversation: Conversation) -> None:
        """Append a line for each guarded reply of a conversation that the log lacks.

        Raises:
            OperationalError: the file cannot be written.
        """
        for held, turn, record in _find_guarded_turns([conversation]):
            if (held.id, turn.index) in self._logged:
                continue
            line = _build_line(held, turn, record, self._length, self._head)
            self._writer = self._writer or LineWriter(self._path)
            self._writer.append(json.dumps(line, ensure_ascii=False, allow_nan=False))
            self._head, self._length = line["hash"], self._length + 1
            self._logged.add((held.id, turn.index))

    def close(self) -> None:
        """Close the file."""
        if self._writer is not None:
            self._writer.close()


def _find_guarded_turns(
    conversations: Iterable[Conversation],
) -> Iterator[tuple[Conversation, Turn, GuardRecord]]:
    for conversation in conversations:
        for turn in conversation.turns:
            record = record_of(turn)
            if record is not None:
                yield conversation, turn, record


def _digest_of(record: GuardRecord) -> str:
    return digest(record.model_dump(mode="json"))


def _build_line(
    conversation: Conversation, turn: Turn, record: GuardRecord, sequence: int, previous: str
) -> dict[str, Any]:
    """Return a line in JSON, with its hash."""
    attempts = tuple(attempt.model_copy(update={"reply": None}) for attempt in record.attempts)
    replayed = bool(turn.calls) and all(call.replayed for call in turn.calls)
    entry = Entry(
        sequence=sequence,
        at=None if replayed else datetime.now(UTC).isoformat(timespec="seconds"),
        conversation=conversation.id,
        turn=turn.index,
        chatbot=conversation.chatbot,
        detector=record.detector,
        policy=record.policy,
        policy_digest=record.policy_digest,
        topics=record.topics,
        sensitive=record.sensitive,
        threshold=record.threshold,
        attempts=attempts,
        action=record.action,
        escalated=record.escalated,
        reason=record.reason,
        record=_digest_of(record),
        previous=previous,
        hash="",
    )
    value: dict[str, Any] = _clean(json.loads(entry.model_dump_json()))
    return {**value, "hash": _hash_of(value)}


def _clean(value: Any) -> Any:
    """Return a JSON value without the keys (secrets) that its texts may quote."""
    if isinstance(value, str):
        return remove_keys(value)
    if isinstance(value, list):
        return [_clean(item) for item in value]
    return {name: _clean(item) for name, item in value.items()} if isinstance(value, dict) else value
