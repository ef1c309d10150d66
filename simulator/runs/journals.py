"""The two journals of a run: read, and checked to be of one run."""

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
    """What counts of both journals."""

    conversations: list[Conversation]
    """In place of a failed conversation, the next try of it."""
    verdicts: list[Verdict]
    """The first verdict of a key, or the next one where it failed."""

    def of(self, made_by: Makers | None) -> Journals:
        """Without conversations of others, and verdicts on them; all where it is not known who makes them."""
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
        UsageError: a line is wrong, or is about what the other journal does not have; names it.
    """
    # A run may be writing: of a verdict that is read first, the conversation is read in any case.
    judged = [(number, verdict) for number, verdict in _parsed(verdicts, Verdict)]
    held = _held(conversations)
    found: dict[tuple[str, int, str, str], Verdict] = {}
    for number, verdict in judged:
        _require_subject(verdict, held, f"{verdicts}, line {number}", conversations)
        key = verdict_key(verdict)
        if key not in found or found[key].outcome == "failed":
            found[key] = verdict
    return Journals(_that_count(held), list(found.values()))


def read_conversations(path: Path) -> list[Conversation]:
    """The conversations of a journal that count, see `Journals`.

    Raises:
        UsageError: a line is wrong; names it.
    """
    return _that_count(_held(path))


def current_verdicts(verdicts: Sequence[Verdict], saved: SavedExperiment | None) -> list[Verdict]:
    """Without verdicts of an older configuration of a detector.

    Args:
        saved: the folder's experiment.json; None: all verdicts count.
    """
    if saved is None:
        return list(verdicts)
    return [verdict for verdict in verdicts if saved.detectors.get(verdict.detector) == verdict.version]


def _held(path: Path) -> dict[str, Conversation]:
    """Every conversation of a journal by its identifier, those that were tried again later included."""
    held: dict[str, Conversation] = {}
    for number, conversation in _parsed(path, Conversation):
        if conversation.id in held:
            raise UsageError(
                f"{path}, line {number}: field `id`: an earlier line has the conversation "
                f"{conversation.id!r}, too. Delete one of them."
            )
        held[conversation.id] = conversation
    return held


def _that_count(held: dict[str, Conversation]) -> list[Conversation]:
    found: dict[str, Conversation] = {}
    for conversation in held.values():
        first = first_try(conversation.id)
        earlier = found.get(first)
        if first != conversation.id and earlier is not None and earlier.stop_reason == "error":
            found[first] = conversation
        else:
            found.setdefault(conversation.id, conversation)
    return list(found.values())


def _require_subject(
    verdict: Verdict, held: dict[str, Conversation], place: str, conversations: Path
) -> None:
    """Raise UsageError unless the verdict is about a reply that was given, and fits it."""
    conversation = held.get(verdict.conversation)
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
    """What a verdict is about: resuming skips keys of which the journal has a verdict that did not fail."""
    return (verdict.conversation, verdict.turn, verdict.detector, verdict.version)


def first_try(conversation: str) -> str:
    """The identifier that a conversation had when it was first held."""
    return _TRY.sub("", conversation)


def next_try(conversation: str) -> str:
    """The identifier for holding a failed conversation again.

    It is another one, so that verdicts on what was said before the failure are not taken for verdicts on what
    is said now, at whatever moment the run is killed.
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
