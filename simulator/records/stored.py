"""Lines of a journal that stay in their file until they are asked for."""

from __future__ import annotations

import codecs
from array import array
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from itertools import repeat
from pathlib import Path
from typing import BinaryIO, Generic, TypeVar, overload

from pydantic import BaseModel, ValidationError

from hallulab.scenarios.errors import OperationalError, UsageError
from hallulab.scenarios.files.opening import open_file
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
