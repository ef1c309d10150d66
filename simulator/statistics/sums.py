"""Sums that do not depend on the order of what is added, so that parts of a run can be counted apart."""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import numpy as np

from hallulab.simulator.statistics.intervals import Integers

Person = tuple[str, str]
"""Scenario and persona. Conversations of different persons are independent; seeds of one person are not."""

Key = tuple[Any, ...]
"""What sums are about, such as a detector and a turn."""

_DIGITS = 1074
"""The smallest float is 2 ** -1074, so every float is a multiple of it."""


class ExactSum:
    """Adds up floats without rounding; the total is rounded once, as `math.fsum` does.

    >>> total = ExactSum()
    >>> for value in (0.1, 1e16, -1e16):
    ...     total.add(value)
    >>> total.value()
    0.1
    """

    def __init__(self) -> None:
        self._total = 0

    def add(self, value: float) -> None:
        """Add a finite number."""
        numerator, denominator = float(value).as_integer_ratio()
        self._total += numerator << (_DIGITS + 1 - denominator.bit_length())

    def merge(self, other: ExactSum) -> None:
        """Add what another one added up."""
        self._total += other._total

    def value(self) -> float:
        """Return the sum."""
        return self._total / (1 << _DIGITS)


class PersonSums:
    """Adds up whole numbers of each person, under several keys.

    What was added of one person is in a dictionary until another person comes, and in arrays then. So least
    memory is needed if persons come one after the other.

    >>> sums = PersonSums(2)
    >>> sums.add(("s", "asha"), ("flagged",), (1, 2))
    >>> sums.add(("s", "asha"), ("flagged",), (0, 3))
    >>> list(sums.items(("flagged",)))
    [(('s', 'asha'), (1, 5))]

    Args:
        width: how many numbers there are under a key.
    """

    def __init__(self, width: int) -> None:
        self._width = width
        self._places: dict[Person, int] = {}
        self._rows: dict[Key, tuple[array[int], array[int]]] = {}
        """Key → places of persons, and their numbers one after the other."""
        self._person: Person | None = None
        self._own: dict[Key, list[int]] = {}
        self._is_merged = False

    def add(self, person: Person, key: Key, values: Sequence[int]) -> None:
        """Add to the numbers of a person under a key."""
        if person != self._person:
            self._fold()
            self._person = person
        own = self._own.get(key)
        self._own[key] = list(values) if own is None else [a + b for a, b in zip(own, values, strict=True)]

    def merge(self, other: PersonSums) -> None:
        """Add what another one added up. From then on, persons are in the order of their names."""
        self._fold()
        other._fold()
        moved = [self._places.setdefault(person, len(self._places)) for person in other._places]
        for key, (places, values) in other._rows.items():
            own_places, own_values = self._rows.setdefault(key, (array("q"), array("q")))
            own_places.extend(moved[place] for place in places)
            own_values.extend(values)
        self._is_merged = True

    @property
    def keys(self) -> Iterable[Key]:
        """The keys."""
        self._fold()
        return self._rows.keys()

    def items(self, key: Key) -> Iterator[tuple[Person, tuple[int, ...]]]:
        """Yield the persons that have numbers under a key, and these, in the order in which they came."""
        persons, numbers = self.table(key)
        for person, row in zip(persons, numbers.tolist(), strict=True):
            yield person, tuple(row)

    def table(self, key: Key) -> tuple[list[Person], Integers]:
        """Return these persons, and their numbers in rows."""
        self._fold()
        places, values = self._rows.get(key, (array("q"), array("q")))
        found, rows = np.unique(np.array(places, dtype=np.int64), return_inverse=True)
        sums = np.zeros((len(found), self._width), dtype=np.int64)
        np.add.at(sums, rows, np.array(values, dtype=np.int64).reshape(-1, self._width))
        everybody = list(self._places)
        persons = [everybody[place] for place in found]
        if not self._is_merged:
            return persons, sums
        order = sorted(range(len(persons)), key=persons.__getitem__)
        return [persons[place] for place in order], sums[order]

    def _fold(self) -> None:
        if self._person is None or not self._own:
            return
        place = self._places.setdefault(self._person, len(self._places))
        for key, values in self._own.items():
            places, numbers = self._rows.setdefault(key, (array("q"), array("q")))
            places.append(place)
            numbers.extend(values)
        self._own = {}
