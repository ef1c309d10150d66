"""The lines of both journals: what stays of each in memory, and which of them count."""

from __future__ import annotations

import re
from array import array
from collections.abc import Iterator
from pathlib import Path
from sys import intern
from typing import NamedTuple

from pydantic import ValidationError

from hallulab.chatbots.evidence import lacks_evidence
from hallulab.detectors.base.protocol import find_misfit
from hallulab.scenarios.errors import UsageError
from hallulab.scenarios.files.json_text import read_placed_lines
from hallulab.scenarios.transcript import Conversation, Pairing, Verdict
from hallulab.simulator.records.experiment_file import describe_flaw
from hallulab.simulator.records.journal_files import LazyJournal, Line

# Nine digits: the identifier may be a stranger's, and Python reads no number of thousands of digits.
_TRY = re.compile(r"-try([0-9]{1,9})$")


class LineHeader(NamedTuple):
    """Part of a conversation that stays in memory."""

    scenario: str
    persona: str
    seed: int
    depth: int
    """`Conversation.depth` of the first turn."""
    id: str
    chatbot: str
    version: str
    failed: bool
    turns: int

    @property
    def pairing(self) -> Pairing:
        """Scenario, persona and seed, which conversations of several chatbots with one user share."""
        return self.scenario, self.persona, self.seed


class VerdictKey(NamedTuple):
    """Identity of a verdict."""

    conversation: str
    turn: int
    detector: str
    version: str


class _LineIndex:
    """Where the lines of a journal begin, in bytes, and their numbers."""

    def __init__(self) -> None:
        self.places, self.numbers = array("q"), array("q")

    def read(self, path: Path, kind: type[Line]) -> Iterator[Line]:
        """Yield the lines, and keep where they are."""
        for number, place, value in read_placed_lines(path):
            try:
                line = kind.model_validate(value)
            except ValidationError as error:
                raise UsageError(describe_flaw(path, number, error)) from error
            self.places.append(place)
            self.numbers.append(number)
            yield line


class ConversationLines:
    """All conversations of a journal, failed tries included.

    A conversation whose evidence was searched later has a second line, with the evidence, which counts.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self.heads: list[LineHeader] = []
        self.at: dict[str, int] = {}
        """Identifier → position of its first line."""
        self._completed: dict[int, int] = {}
        """Position of a line without evidence → position of the line with it."""
        self._begin = array("q")
        """Where each one's replies begin in what follows."""
        self._characters, self._words = array("q"), array("q")
        found = _LineIndex()
        lacking: set[int] = set()
        for conversation in found.read(path, Conversation):
            place = len(self.heads)
            first = self.at.setdefault(conversation.id, place)
            if any(map(lacks_evidence, conversation.turns)):
                lacking.add(place)
            if first != place and (first not in lacking or place in lacking):
                raise UsageError(
                    f"{path}, line {found.numbers[-1]}: field `id`: an earlier line has the conversation "
                    f"{conversation.id!r}, too. Delete one of them."
                )
            if first != place:
                self._completed.setdefault(first, place)
            self.heads.append(build_header(conversation))
            self._begin.append(len(self._words))
            self._characters.extend(len(turn.reply) for turn in conversation.turns)
            self._words.extend(len(turn.reply.split()) for turn in conversation.turns)
        self.stored = LazyJournal(path, Conversation, found.places, found.numbers)

    def measure(self, at: int, turn: int) -> tuple[int, int]:
        """Return the characters and words of a reply."""
        place = self._begin[at] + turn
        return self._characters[place], self._words[place]

    def counting(self) -> list[int]:
        """Return the positions of those that count."""
        found: dict[str, int] = {}
        for place, head in enumerate(self.heads):
            if self.at[head.id] != place:
                continue
            first = derive_first_try(head.id)
            earlier = found.get(first)
            if first != head.id and earlier is not None and self.heads[earlier].failed:
                found[first] = place
            else:
                found.setdefault(head.id, place)
        return [self._completed.get(place, place) for place in found.values()]


class VerdictLines:
    """All verdicts of a journal."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self.keys: list[VerdictKey] = []
        self.failed = bytearray()
        self._reach = array("q")
        """The last character under a span of each."""
        self._words = array("q")
        """The number of words that each scores, or -1."""
        self._found = _LineIndex()
        for verdict in self._found.read(path, Verdict):
            self.keys.append(build_verdict_key(verdict))
            self.failed.append(verdict.outcome == "failed")
            self._reach.append(max((span.end or 0 for span in verdict.spans or ()), default=0))
            self._words.append(-1 if verdict.word_scores is None else len(verdict.word_scores))
        self.stored = LazyJournal(path, Verdict, self._found.places, self._found.numbers)

    def require_subjects(self, held: ConversationLines) -> None:
        """Raise UsageError unless each verdict is about a reply of the other journal, and fits it."""
        for place, key in enumerate(self.keys):
            at = held.at.get(key.conversation)
            if at is not None and key.turn < held.heads[at].turns:
                characters, words = held.measure(at, key.turn)
                if self._reach[place] <= characters and self._words[place] in (-1, words):
                    continue
            conversation = None if at is None else held.stored[at]
            where = f"{self._path}, line {self._found.numbers[place]}"
            _require_subject(self.stored[place], conversation, where, held.path)

    def counting(self) -> list[int]:
        """Return the positions of those that count."""
        found: dict[VerdictKey, int] = {}
        for place, key in enumerate(self.keys):
            if key not in found or self.failed[found[key]]:
                found[key] = place
        return list(found.values())


def _require_subject(
    verdict: Verdict, conversation: Conversation | None, place: str, conversations: Path
) -> None:
    """Raise UsageError unless the verdict is about a reply of the conversation, and fits it."""
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
    found = find_misfit(verdict, conversation.turns[verdict.turn].reply)
    if found is not None:
        field, flaw = found
        raise UsageError(f"{place}: field `{field}`: {flaw}. Correct or delete the line.")


def build_header(conversation: Conversation) -> LineHeader:
    """Return what is held in memory of a conversation. Thousands name one chatbot, which is held once."""
    return LineHeader(
        scenario=intern(conversation.scenario),
        persona=intern(conversation.persona),
        seed=conversation.seed,
        depth=conversation.depth(0),
        id=intern(conversation.id),
        chatbot=intern(conversation.chatbot),
        version=intern(conversation.version),
        failed=conversation.stop_reason == "error",
        turns=len(conversation.turns),
    )


def build_verdict_key(verdict: Verdict) -> VerdictKey:
    """Return what identifies a verdict. Resuming skips keys that have a verdict that did not fail."""
    return VerdictKey(
        intern(verdict.conversation), verdict.turn, intern(verdict.detector), intern(verdict.version)
    )


def derive_first_try(conversation: str) -> str:
    """Return the identifier of the conversation's first try."""
    return _TRY.sub("", conversation)


def derive_next_try(conversation: str) -> str:
    """Return the identifier for the next try of a failed conversation.

    It is a new one. So verdicts on the failed try are never taken for verdicts on the next one, whenever the
    run is killed.
    """
    found = _TRY.search(conversation)
    return f"{derive_first_try(conversation)}-try{int(found[1]) + 1 if found else 2}"
