"""Read the two journals of a run, and check that they belong together."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

from pydantic import BaseModel, ValidationError

from detectors.base.checking import misfit
from scenarios.errors import UsageError
from scenarios.files.jsonl import read_lines
from scenarios.transcript import Conversation, Verdict
from simulator.experiment.config import describe
from simulator.experiment.makers import Makers
from simulator.runs.experiment_json import SavedExperiment

Line = TypeVar("Line", bound=BaseModel)

_TRY = re.compile(r"-try([0-9]{1,9})$")


@dataclass(frozen=True)
class Journals:
    """The conversations and verdicts that count."""

    conversations: list[Conversation]
    """A failed conversation is replaced by its next try."""
    verdicts: list[Verdict]
    """The first verdict of each key; a failed one is replaced by the next one."""

    def of(self, made_by: Makers | None) -> Journals:
        """Return these without conversations of other makers, and verdicts on them; all of them for None."""
        if made_by is None:
            return self
        others = {one.id for one in self.conversations if not made_by.made(one)}
        return Journals(
            [one for one in self.conversations if one.id not in others],
            [verdict for verdict in self.verdicts if verdict.conversation not in others],
        )


def read_journals(conversations: Path, verdicts: Path) -> Journals:
    """Read both journals.

    Raises:
        UsageError: a line is wrong, or is about something that the other journal lacks; names the line.
    """
    # A run may be writing. Verdicts are read first, so their conversations are already there.
    judged = [(number, verdict) for number, verdict in _parsed(verdicts, Verdict)]
    by_id = _by_id(conversations)
    found: dict[tuple[str, int, str, str], Verdict] = {}
    for number, verdict in judged:
        _require_subject(verdict, by_id, f"{verdicts}, line {number}", conversations)
        key = verdict_key(verdict)
        if key not in found or found[key].outcome == "failed":
            found[key] = verdict
    return Journals(_counting(by_id), list(found.values()))


def read_conversations(path: Path) -> list[Conversation]:
    """Read the conversations of a journal that count, see `Journals`.

    Raises:
        UsageError: a line is wrong; names it.
    """
    return _counting(_by_id(path))


def current_verdicts(verdicts: Sequence[Verdict], saved: SavedExperiment | None) -> list[Verdict]:
    """Return the verdicts without those of an older version of a detector.

    Args:
        saved: the folder's experiment.json; None: all verdicts count.
    """
    if saved is None:
        return list(verdicts)
    return [verdict for verdict in verdicts if saved.detectors.get(verdict.detector) == verdict.version]


def _by_id(path: Path) -> dict[str, Conversation]:
    """Read all conversations of a journal by identifier, failed tries included."""
    by_id: dict[str, Conversation] = {}
    for number, conversation in _parsed(path, Conversation):
        if conversation.id in by_id:
            raise UsageError(
                f"{path}, line {number}: field `id`: an earlier line has the conversation "
                f"{conversation.id!r}, too. Delete one of them."
            )
        by_id[conversation.id] = conversation
    return by_id


def _counting(by_id: dict[str, Conversation]) -> list[Conversation]:
    found: dict[str, Conversation] = {}
    for conversation in by_id.values():
        first = first_try(conversation.id)
        earlier = found.get(first)
        if first != conversation.id and earlier is not None and earlier.stop_reason == "error":
            found[first] = conversation
        else:
            found.setdefault(conversation.id, conversation)
    return list(found.values())


def _require_subject(
    verdict: Verdict, by_id: dict[str, Conversation], place: str, conversations: Path
) -> None:
    """Raise UsageError unless the verdict is about a reply of the journal, and fits it."""
    conversation = by_id.get(verdict.conversation)
    if conversation is None:
        raise UsageError(
            f"{place}: field `conversation`: {conversations} has no conversation {verdict.conversation!r}. "
            "Restore it there, or delete the verdicts about it."
        )
    if verdict.turn >= len(conversation.turns):
        raise UsageError(
            f"{place}: field `turn`: there is no turn {verdict.turn} in conversation {conversation.id!r}, "
            f"which has {len(conversation.turns)}. Correct or delete the line."
        )
    found = misfit(verdict, conversation.turns[verdict.turn].reply)
    if found is not None:
        field, flaw = found
        raise UsageError(f"{place}: field `{field}`: {flaw}. Correct or delete the line.")


def verdict_key(verdict: Verdict) -> tuple[str, int, str, str]:
    """Return what identifies a verdict. Resuming skips keys that have a verdict that did not fail."""
    return (verdict.conversation, verdict.turn, verdict.detector, verdict.version)


def first_try(conversation: str) -> str:
    """Return the identifier of the conversation's first try."""
    return _TRY.sub("", conversation)


def next_try(conversation: str) -> str:
    """Return the identifier for the next try of a failed conversation.

    It is a new one. So verdicts on the failed try are never taken for verdicts on the next one, whenever the
    run is killed.
    """
    found = _TRY.search(conversation)
    return f"{first_try(conversation)}-try{int(found[1]) + 1 if found else 2}"


def _parsed(path: Path, kind: type[Line]) -> Iterator[tuple[int, Line]]:
    for number, value in read_lines(path):
        try:
            line = kind.model_validate(value)
        except ValidationError as error:
            raise UsageError(
                f"{path}, line {number}: {describe(error)} Correct or delete the line."
            ) from error
        yield number, line
