"""The files of a run's journals: lazily read lines, and shards.

A run of many conversations has sixteen journals of each kind, chosen by the persona. All conversations of a
persona, and the verdicts on them, are in one shard. So a shard can be counted alone: comparisons of chatbots
are paired by persona, and intervals are over personas.
"""

from __future__ import annotations

import codecs
import hashlib
from array import array
from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack
from itertools import repeat
from pathlib import Path
from types import TracebackType
from typing import BinaryIO, Generic, Self, TypeVar, overload

from pydantic import BaseModel, ValidationError

from hallulab.scenarios.errors import OperationalError, UsageError
from hallulab.scenarios.files.json_text import LineWriter
from hallulab.scenarios.files.opening import open_file
from hallulab.scenarios.transcript import Conversation, Verdict
from hallulab.simulator.records.experiment_file import describe_flaw
from hallulab.simulator.records.run_files import SHARDS, list_shards

Line = TypeVar("Line", bound=BaseModel)


class LazyJournal(Sequence[Line], Generic[Line]):
    """Lines of a file, read each time that they are asked for. Sixteen bytes of each are held in memory.

    Journals only grow, so a line stays where it was found.

    Args:
        path: the file, or the files of a journal in shards.
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


LARGEST = 100_000
"""Most conversations, as planned, for which a new run has one journal of each kind."""


def choose_shard(persona: str) -> int:
    """Return the number of the shard that a persona's conversations are in.

    >>> choose_shard("asha"), choose_shard("ravi")
    (10, 4)
    """
    return int.from_bytes(hashlib.sha256(persona.encode()).digest()[:8]) % SHARDS


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
