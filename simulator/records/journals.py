"""Read the two journals of a run, and check that they belong together.

Journals are read as streams. Only the identity of each conversation and verdict remains in memory;
their texts are read again when they are asked for (`LazyJournal`).
"""

from __future__ import annotations

import re
from array import array
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property, lru_cache
from pathlib import Path
from sys import intern
from typing import NamedTuple

from pydantic import ValidationError

from hallulab.chatbots.evidence import lacks_evidence
from hallulab.detectors.base.protocol import find_misfit
from hallulab.scenarios.errors import UsageError
from hallulab.scenarios.files.json_text import read_placed_lines
from hallulab.scenarios.transcript import Conversation, Verdict
from hallulab.simulator.records.experiment_json import ComponentVersions, SavedExperiment
from hallulab.simulator.records.journal_files import LazyJournal, Line, choose_shard, describe_flaw
from hallulab.simulator.records.run_files import SHARDS, list_shards

# Nine digits: the identifier may be a stranger's, and Python reads no number of thousands of digits.
_TRY = re.compile(r"-try([0-9]{1,9})$")

Judged = tuple[Conversation, Sequence[Verdict]]
"""A conversation, and the verdicts on it."""


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


class VerdictKey(NamedTuple):
    """Identity of a verdict."""

    conversation: str
    turn: int
    detector: str
    version: str


@dataclass(frozen=True)
class Journals:
    """The conversations and verdicts that count."""

    conversations: Sequence[Conversation]
    """A failed conversation is replaced by its next try."""
    verdicts: Sequence[Verdict]
    """The first verdict of each key; a failed one is replaced by the next one."""
    _heads: Sequence[LineHeader] | None = field(default=None, compare=False, repr=False)
    _keys: Sequence[VerdictKey] | None = field(default=None, compare=False, repr=False)
    _failed: frozenset[VerdictKey] | None = field(default=None, compare=False, repr=False)

    @cached_property
    def heads(self) -> Sequence[LineHeader]:
        """Headers of the conversations, in their order."""
        return [*map(build_header, self.conversations)] if self._heads is None else self._heads

    @cached_property
    def keys(self) -> Sequence[VerdictKey]:
        """Keys of the verdicts, in their order."""
        return [*map(build_verdict_key, self.verdicts)] if self._keys is None else self._keys

    @cached_property
    def failed(self) -> frozenset[VerdictKey]:
        """Keys of the verdicts that failed."""
        if self._failed is None:
            return frozenset(build_verdict_key(one) for one in self.verdicts if one.outcome == "failed")
        return self._failed

    def of(self, made_by: ComponentVersions | None) -> Journals:
        """Return these without conversations of other makers, and verdicts on them; all of them for None."""
        if made_by is None:
            return self
        others = {head.id for head in self.heads if not made_by.made(head)}
        return self._some(lambda head: head.id not in others, lambda key: key.conversation not in others)

    def current(self, saved: SavedExperiment | None) -> Journals:
        """Return these without verdicts of an older version of a detector.

        Args:
            saved: the folder's experiment.json; None: all verdicts count.
        """
        if saved is None:
            return self
        return self._some(None, lambda key: saved.detectors.get(key.detector) == key.version)

    def about(self, wanted: Callable[[LineHeader], bool]) -> Journals:
        """Return the conversations that are wanted, and the verdicts on them."""
        ids = {head.id for head in self.heads if wanted(head)}
        return self._some(lambda head: head.id in ids, lambda key: key.conversation in ids)

    def judged(self, by_case: bool = True) -> Iterator[Judged]:
        """Yield each conversation with the verdicts on it, by detectors and turns, one after the other.

        Args:
            by_case: in the order of scenarios, personas, seeds and branches, else in that of the journal.
        """
        found: dict[str, list[int]] = defaultdict(list)
        for position, key in enumerate(self.keys):
            found[key.conversation].append(position)
        order: Sequence[int] = range(len(self.heads))
        order = sorted(order, key=self.heads.__getitem__) if by_case else order
        places = [place for one in order for place in found.get(self.heads[one].id, ())]
        verdicts = iter(_select_lines(self.verdicts, places))
        for one, conversation in zip(order, _select_lines(self.conversations, order), strict=True):
            own = [next(verdicts) for _ in found.get(self.heads[one].id, ())]
            yield conversation, sorted(own, key=lambda verdict: (verdict.detector, verdict.turn))

    def _some(
        self, wanted: Callable[[LineHeader], bool] | None, judging: Callable[[VerdictKey], bool]
    ) -> Journals:
        heads, keys = self.heads, self.keys
        chats = [place for place, head in enumerate(heads) if wanted is None or wanted(head)]
        found = [place for place, key in enumerate(keys) if judging(key)]
        return Journals(
            _select_lines(self.conversations, chats),
            _select_lines(self.verdicts, found),
            [heads[place] for place in chats],
            [keys[place] for place in found],
            self.failed,
        )


def read_journals(conversations: Path, verdicts: Path) -> Journals:
    """Read both journals.

    Raises:
        UsageError: a line is wrong, or is about something that the other journal lacks; names the line.
    """
    # A run may be writing. Verdicts are read first, so their conversations are already there.
    judged = _Verdicts(verdicts)
    held = _Conversations(conversations)
    judged.require_subjects(held)
    chats, found = held.counting(), judged.counting()
    return Journals(
        held.stored.some(chats),
        judged.stored.some(found),
        [held.heads[place] for place in chats],
        [judged.keys[place] for place in found],
        frozenset(judged.keys[place] for place in found if judged.failed[place]),
    )


def read_second_verdicts(path: Path, first: Journals) -> Journals:
    """Read the second verdicts on replies, each of which has the key of the first one that it repeats.

    Those on a reply without that first verdict, or with one of another version, are left out.

    Args:
        path: the journal of second verdicts; it need not exist.
        first: the conversations, and the first verdicts.

    Raises:
        UsageError: a line is wrong; names it.
    """
    found, known = _Verdicts(path), set(first.keys)
    places = [place for place in found.counting() if found.keys[place] in known]
    return Journals(
        first.conversations,
        found.stored.some(places),
        first.heads,
        [found.keys[place] for place in places],
        frozenset(found.keys[place] for place in places if found.failed[place]),
    )


def read_shard(conversations: Path, verdicts: Path, shard: int) -> Journals:
    """Read both journals of a shard.

    Raises:
        UsageError: a line is wrong, or belongs to another shard; names it.
    """
    found = read_journals(conversations, verdicts)
    for head in found.heads:
        if choose_shard(head.persona) != shard:
            right = list_shards(conversations.with_name("conversations.jsonl"))[choose_shard(head.persona)]
            raise UsageError(
                f"{conversations}: conversation {head.id!r} is with persona {head.persona!r}, whose "
                f"conversations are in {right.name}. Move its line, and those of the verdicts on it."
            )
    return found


def join_journals(parts: Sequence[Journals]) -> Journals:
    """Return the journals of several shards as one."""
    return Journals(
        _join_lines([part.conversations for part in parts]),
        _join_lines([part.verdicts for part in parts]),
        [head for part in parts for head in part.heads],
        [key for part in parts for key in part.keys],
        frozenset(key for part in parts for key in part.failed),
    )


def read_conversations(path: Path) -> LazyJournal[Conversation]:
    """Read the conversations of a journal that count, see `Journals`.

    Raises:
        UsageError: a line is wrong; names it.
    """
    held = _Conversations(path)
    return held.stored.some(held.counting())


def count_turns(path: Path) -> Mapping[str, int]:
    """Return how many turns each conversation of a journal has, also of those that do not count.

    Raises:
        UsageError: a line is wrong; names it.
    """
    if not path.is_file():
        return {}
    state = path.stat()
    return _count_turns(path, (state.st_size, state.st_mtime_ns))


@lru_cache(maxsize=SHARDS)
def _count_turns(path: Path, _state: tuple[int, int]) -> Mapping[str, int]:
    """Count turns; the viewer asks at each key, so they are kept until the file has another state."""
    return {head.id: head.turns for head in _Conversations(path).heads}


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


class _Conversations:
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


class _Verdicts:
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

    def require_subjects(self, held: _Conversations) -> None:
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


def _join_lines(parts: Sequence[Sequence[Line]]) -> Sequence[Line]:
    lazy = [part for part in parts if isinstance(part, LazyJournal)]
    if lazy and len(lazy) == len(parts):
        return LazyJournal.join(lazy)
    return [line for part in parts for line in part]


def _select_lines(lines: Sequence[Line], positions: Sequence[int]) -> Sequence[Line]:
    return lines.some(positions) if isinstance(lines, LazyJournal) else [lines[place] for place in positions]


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
