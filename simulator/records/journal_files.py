"""The files of a run's journals: lazily read lines, shards, and turns of cut-off conversations.

A run of many conversations has sixteen journals of each kind, chosen by the persona. All conversations of a
persona, and the verdicts on them, are in one shard. So a shard can be counted alone: comparisons of chatbots
are paired by persona, and intervals are over personas.

A turn is a line of `turns.jsonl` from when it ends until its conversation is in the journal of conversations.
So the file is empty or missing unless a run is under way or was cut off.
"""

from __future__ import annotations

import codecs
import hashlib
from array import array
from collections import Counter
from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from itertools import repeat
from pathlib import Path
from types import TracebackType
from typing import BinaryIO, Generic, Self, TypeVar, overload

from pydantic import BaseModel, ValidationError

from hallulab.scenarios.errors import OperationalError, UsageError
from hallulab.scenarios.files.atomic import write_atomically
from hallulab.scenarios.files.json_text import LineWriter, read_lines
from hallulab.scenarios.files.opening import open_file
from hallulab.scenarios.transcript import Conversation, Frozen, Turn, Verdict
from hallulab.simulator.records.experiment_file import describe

Line = TypeVar("Line", bound=BaseModel)


class LazyJournal(Sequence[Line], Generic[Line]):
    """Lines of a file, read each time that they are asked for. Sixteen bytes of each are held in memory.

    Journals only grow, so a line stays where it was found.

    Args:
        path: the file, or the files of a journal in shards.
        kind: what each line is.
        places: the byte at which each line begins.
        numbers: the number of each line, for errors.
        files: the number of each line's file; None: there is one.
    """

    def __init__(
        self,
        path: Path | Sequence[Path],
        kind: type[Line],
        places: array[int],
        numbers: array[int],
        files: array[int] | None = None,
    ) -> None:
        self._paths = (path,) if isinstance(path, Path) else tuple(path)
        self._kind = kind
        self._places = places
        self._numbers = numbers
        self._files = files

    @classmethod
    def join(cls, parts: Sequence[LazyJournal[Line]]) -> LazyJournal[Line]:
        """Return the lines of several journals of one kind as one."""
        places, numbers, files = array("q"), array("q"), array("H")
        paths: dict[Path, int] = {}
        for part in parts:
            at = [paths.setdefault(path, len(paths)) for path in part._paths]
            places += part._places
            numbers += part._numbers
            own = part._files or repeat(0, len(part))
            files.extend(at[number] for number in own)
        return cls(tuple(paths), parts[0]._kind, places, numbers, files)

    def some(self, positions: Sequence[int]) -> LazyJournal[Line]:
        """Return the lines at these positions."""
        places, numbers = (
            array("q", (held[position] for position in positions)) for held in (self._places, self._numbers)
        )
        held = self._files
        files = None if held is None else array("H", (held[position] for position in positions))
        return LazyJournal(self._paths, self._kind, places, numbers, files)

    def __len__(self) -> int:
        return len(self._places)

    @overload
    def __getitem__(self, at: int) -> Line: ...

    @overload
    def __getitem__(self, at: slice) -> LazyJournal[Line]: ...

    def __getitem__(self, at: int | slice) -> Line | LazyJournal[Line]:
        if isinstance(at, slice):
            return self.some(range(len(self))[at])
        return next(self.at([range(len(self))[at]]))

    def __iter__(self) -> Iterator[Line]:
        return self.at(range(len(self)))

    def at(self, positions: Sequence[int]) -> Iterator[Line]:
        """Yield the lines at these positions, one after the other.

        Raises:
            UsageError: a line was changed since it was found.
            OperationalError: the file cannot be read any more.
        """
        with ExitStack() as opened:
            files: dict[Path, BinaryIO] = {}
            for position in positions:
                path = self._paths[0 if self._files is None else self._files[position]]
                try:
                    if path not in files:  # there may be no file as long as no line is asked for
                        files[path] = opened.enter_context(open_file(path))
                    files[path].seek(self._places[position])
                    line = files[path].readline()
                except OSError as error:
                    raise OperationalError(f"cannot read {path}: {error.strerror}.") from error
                yield self._read(line, path, self._numbers[position])

    def _read(self, line: bytes, path: Path, number: int) -> Line:
        """Read a line that was found sound: a third of the time of a first reading."""
        try:
            return self._kind.model_validate_json(line.removeprefix(codecs.BOM_UTF8))
        except ValidationError as error:
            raise UsageError(describe_flaw(path, number, error)) from error


def describe_flaw(path: Path, number: int, error: ValidationError) -> str:
    """Say what is wrong with a line."""
    return f"{path}, line {number}: {describe(error)} Correct or delete the line."


SHARDS = 16
LARGEST = 100_000
"""Most conversations, as planned, for which a new run has one journal of each kind."""


def choose_shard(persona: str) -> int:
    """Return the number of the shard that a persona's conversations are in.

    >>> choose_shard("asha"), choose_shard("ravi")
    (10, 4)
    """
    return int.from_bytes(hashlib.sha256(persona.encode()).digest()[:8]) % SHARDS


def list_shards(journal: Path) -> list[Path]:
    """Return the paths of all shards of a journal, which need not exist.

    >>> list_shards(Path("verdicts.jsonl"))[9].name
    'verdicts-09.jsonl'
    """
    return [journal.with_name(f"{journal.stem}-{number:02d}{journal.suffix}") for number in range(SHARDS)]


class JournalFiles:
    """The two journals of a run, open for appending, each in one file or in shards.

    Args:
        conversations: where the journal of conversations is, were it one file.
        verdicts: where the journal of verdicts is, were it one file.
        in_shards: whether each is in shards.
        held: identifiers of the conversations that are there, and their personas; only shards ask for them.

    Raises:
        OperationalError: a file cannot be opened or written.
    """

    def __init__(
        self, conversations: Path, verdicts: Path, in_shards: bool, held: Iterable[tuple[str, str]] = ()
    ) -> None:
        self._shards = {id: choose_shard(persona) for id, persona in held} if in_shards else None
        with ExitStack() as files:
            self._conversations, self._verdicts = (
                [files.enter_context(LineWriter(file)) for file in own]
                for own in (list_shards(path) if in_shards else [path] for path in (conversations, verdicts))
            )
            self._open = files.pop_all()

    def add_conversation(self, conversation: Conversation) -> None:
        """Append a conversation."""
        shard = 0
        if self._shards is not None:
            shard = self._shards[conversation.id] = choose_shard(conversation.persona)
        self._conversations[shard].append(conversation.model_dump_json())

    def add_verdict(self, verdict: Verdict) -> None:
        """Append a verdict on a conversation that is there."""
        shard = 0 if self._shards is None else self._shards[verdict.conversation]
        self._verdicts[shard].append(verdict.model_dump_json())

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._open.close()


MOST_DEAD_LINES = 1000
"""Lines of ended conversations in the file, above which it is rewritten; more if more lines are alive."""


class TurnLine(Frozen):
    """A line of `turns.jsonl`."""

    conversation: str
    """Identifier of the conversation."""
    turn: Turn


def read_turns(path: Path, ended: Container[str] = ()) -> dict[str, list[Turn]]:
    """Read the turns of conversations that were cut off.

    Args:
        path: the file; it need not exist.
        ended: identifiers of conversations that stand in their journal, and are left out here.

    Raises:
        UsageError: a line is wrong, or a turn before it is missing; names the line.
    """
    found: dict[str, list[Turn]] = {}
    for number, value in read_lines(path):
        try:
            line = TurnLine.model_validate(value)
        except ValidationError as error:
            raise UsageError(describe_flaw(path, number, error)) from error
        if line.conversation in ended:
            continue
        turns = found.setdefault(line.conversation, [])
        if line.turn.index == 0:
            turns.clear()  # a worker that died may have restarted the conversation
        if line.turn.index != len(turns):
            raise UsageError(
                f"{path}, line {number}: field `turn.index`: turn {line.turn.index} follows {len(turns)} "
                f"turns of conversation {line.conversation!r}. Delete the conversation's lines: it then "
                "starts over."
            )
        turns.append(line.turn)
    return found


class TurnJournal:
    """Appends turns, and removes those of conversations that have ended.

    Args:
        path: the file.
        earlier: what stands in it and counts (`read_turns`).

    Raises:
        OperationalError: the file cannot be opened or written.
    """

    def __init__(self, path: Path, earlier: Mapping[str, Sequence[Turn]]) -> None:
        self.path = path
        self._alive = Counter({conversation: len(turns) for conversation, turns in earlier.items()})
        """Lines of each conversation that has not ended."""
        self._dead = 0
        if path.exists():
            self._write(earlier)
        self._file = LineWriter(path)

    def append(self, conversation: str, turn: Turn) -> None:
        """Write a turn. The operating system has it before this returns."""
        self._file.append(TurnLine(conversation=conversation, turn=turn).model_dump_json())
        self._alive[conversation] += 1

    def remove(self, conversation: str) -> None:
        """Remove the turns of a conversation, which stands in its own journal by now.

        Its lines may stay for a while. Whoever reads them knows that they do not count any more.
        """
        self._dead += self._alive.pop(conversation, 0)
        if not self._alive:
            self._file.clear()
            self._dead = 0
        elif self._dead > max(MOST_DEAD_LINES, self._alive.total()):
            self._file.close()
            self._drop_dead_lines()
            self._file = LineWriter(self.path)

    def close(self) -> None:
        """Close the file, and remove what does not count in it, or the file."""
        self._file.close()
        if not self._alive:
            self.path.unlink(missing_ok=True)
        elif self._dead:
            self._drop_dead_lines()

    def _drop_dead_lines(self) -> None:
        self._write({one: turns for one, turns in read_turns(self.path).items() if one in self._alive})
        self._dead = 0

    def _write(self, turns: Mapping[str, Sequence[Turn]]) -> None:
        lines = (
            TurnLine(conversation=conversation, turn=turn).model_dump_json()
            for conversation, held in turns.items()
            for turn in held
        )
        write_atomically(self.path, "".join(f"{line}\n" for line in lines))
