"""Lines of a journal that stay in their file until they are asked for."""

from __future__ import annotations

import codecs
from array import array
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Generic, TypeVar, overload

from pydantic import BaseModel, ValidationError

from hallulab.scenarios.errors import OperationalError, UsageError
from hallulab.simulator.experiment.config import describe

Line = TypeVar("Line", bound=BaseModel)


class LazyJournal(Sequence[Line], Generic[Line]):
    """Lines of a file, read each time that they are asked for. Sixteen bytes of each are held in memory.

    Journals only grow, so a line stays where it was found.

    Args:
        path: the file.
        kind: what each line is.
        places: the byte at which each line begins.
        numbers: the number of each line, for errors.
    """

    def __init__(self, path: Path, kind: type[Line], places: array[int], numbers: array[int]) -> None:
        self._path = path
        self._kind = kind
        self._places = places
        self._numbers = numbers

    def some(self, positions: Sequence[int]) -> LazyJournal[Line]:
        """Return the lines at these positions."""
        places, numbers = (
            array("q", (held[position] for position in positions)) for held in (self._places, self._numbers)
        )
        return LazyJournal(self._path, self._kind, places, numbers)

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
        if not positions:
            return  # there may be no file
        try:
            with self._path.open("rb") as file:
                for position in positions:
                    file.seek(self._places[position])
                    yield self._read(file.readline(), self._numbers[position])
        except OSError as error:
            raise OperationalError(f"cannot read {self._path}: {error.strerror}.") from error

    def _read(self, line: bytes, number: int) -> Line:
        """Read a line that was found sound: a third of the time of a first reading."""
        try:
            return self._kind.model_validate_json(line.removeprefix(codecs.BOM_UTF8))
        except ValidationError as error:
            raise UsageError(describe_flaw(self._path, number, error)) from error


def describe_flaw(path: Path, number: int, error: ValidationError) -> str:
    """Say what is wrong with a line."""
    return f"{path}, line {number}: {describe(error)} Correct or delete the line."
