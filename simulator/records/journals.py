"""Read the two journals of a run, and check that they belong together.

Journals are read as streams. Only the identity of each conversation and verdict remains in memory;
their texts are read again when they are asked for (`LazyJournal`).
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property, lru_cache
from pathlib import Path

from hallulab.scenarios.errors import UsageError
from hallulab.scenarios.transcript import Conversation, Verdict
from hallulab.simulator.records.experiment_json import ComponentVersions, SavedExperiment
from hallulab.simulator.records.journal_files import LazyJournal, Line, choose_shard
from hallulab.simulator.records.journal_lines import (
    ConversationLines,
    LineHeader,
    VerdictKey,
    VerdictLines,
    build_header,
    build_verdict_key,
)
from hallulab.simulator.records.run_files import SHARDS, list_shards

Judged = tuple[Conversation, Sequence[Verdict]]
"""A conversation, and the verdicts on it."""


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
    judged = VerdictLines(verdicts)
    held = ConversationLines(conversations)
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
    found, known = VerdictLines(path), set(first.keys)
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
    held = ConversationLines(path)
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
    return {head.id: head.turns for head in ConversationLines(path).heads}


def _join_lines(parts: Sequence[Sequence[Line]]) -> Sequence[Line]:
    lazy = [part for part in parts if isinstance(part, LazyJournal)]
    if lazy and len(lazy) == len(parts):
        return LazyJournal.join(lazy)
    return [line for part in parts for line in part]


def _select_lines(lines: Sequence[Line], positions: Sequence[int]) -> Sequence[Line]:
    return lines.some(positions) if isinstance(lines, LazyJournal) else [lines[place] for place in positions]
