"""Sums that do not depend on the order of the terms, so that parts of a run can be counted apart.

With each person's sums, a `PersonTable` keeps how the numbers of their seeds spread. From that the variance
of a mean over conversations is split into that of personas and that of seeds: a conversation's number is
taken for the sum of an effect of its persona and one of its seed, both random. The analysis of variance gives
unbiased estimates of their variances (Searle, Casella and McCulloch 1992, Variance Components, section 3.6):
with N conversations of P personas, n of them with one persona,

    seeds    = Σ (x - mean of its persona)² / (N - P)
    personas = (Σ n (mean of the persona - mean)² / (P - 1) - seeds) / n0,  n0 = (N - Σ n² / N) / (P - 1)

A negative estimate counts as 0. The mean over all has the variance personas / P + seeds / N, if each persona
has as many seeds. More seeds of the same personas lessen its second part alone.
"""

from __future__ import annotations

from array import array
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Self

import numpy as np

from hallulab.simulator.statistics.intervals import Integers, Ratio

Person = tuple[str, str]
"""Scenario and persona. Conversations of different persons are independent; seeds of one person are not."""

Key = tuple[Any, ...]
"""The subject of sums, such as a detector and a turn."""

_DIGITS = 1074
"""The smallest float is 2 ** -1074, so every float is a multiple of it."""


class Mergeable:
    """Counts of one part of a run, to which those of another part are added.

    >>> class Greetings(Mergeable):
    ...     COUNTS = ("found",)
    ...     def __init__(self, **found: int) -> None:
    ...         self.found = Counter(found)
    >>> own = Greetings(vanilla=2)
    >>> own.merge(Greetings(vanilla=1, editor=1))
    >>> own.found
    Counter({'vanilla': 3, 'editor': 1})
    """

    COUNTS: ClassVar[Sequence[str]] = ()
    """Attributes that are added up: numbers, sets, Counters, what has `merge`, and defaultdicts of these."""

    def merge(self, other: Self) -> None:
        """Add what another one counted of other personas."""
        for name in self.COUNTS:
            setattr(self, name, _add_counts(getattr(self, name), getattr(other, name)))


def _add_counts(own: Any, more: Any) -> Any:
    if hasattr(own, "merge"):
        own.merge(more)
    elif isinstance(own, Counter | set):
        own.update(more)
    elif isinstance(own, dict):
        for key, value in more.items():
            own[key] = _add_counts(own[key], value)
    else:
        return own + more
    return own


class ExactSum(Mergeable):
    """Adds up floats without rounding; the total is rounded once, as `math.fsum` does.

    >>> total = ExactSum()
    >>> for value in (0.1, 1e16, -1e16):
    ...     total.add(value)
    >>> total.value()
    0.1
    """

    COUNTS = ("_total",)

    def __init__(self) -> None:
        self._total = 0

    def add(self, value: float) -> None:
        """Add a finite number."""
        numerator, denominator = float(value).as_integer_ratio()
        self._total += numerator << (_DIGITS + 1 - denominator.bit_length())

    def value(self) -> float:
        """Return the sum."""
        return self._total / (1 << _DIGITS)


@dataclass(frozen=True, slots=True)
class Spread:
    """How the numbers of one persona's seeds spread."""

    seeds: int
    """Their number, at least 1."""
    mean: float
    squares: float
    """Sum of the squares of their distances from it."""


def measure_spread(values: Sequence[float]) -> Spread:
    """Measure the spread of at least one number."""
    own = np.array(values)
    mean = np.mean(own)
    return Spread(len(own), float(mean), float(np.sum((own - mean) ** 2)))


def pool_seed_variance(spreads: Sequence[Spread]) -> float | None:
    """Return the variance between seeds of one persona, pooled over personas; None: none has two seeds.

    >>> pool_seed_variance([measure_spread([0.0, 2.0]), measure_spread([4.0, 6.0])])
    2.0
    """
    freedom = sum(one.seeds - 1 for one in spreads)
    return sum(one.squares for one in spreads) / freedom if freedom else None


def combine_spreads(spreads: Sequence[Spread]) -> float | None:
    """Return the share of the mean's variance that more seeds of the same personas remove at most.

    None with fewer than two personas, where none has two seeds, and where nothing varies.

    >>> combine_spreads([measure_spread([0.0, 2.0]), measure_spread([4.0, 6.0])])
    0.125
    """
    counts = np.array([one.seeds for one in spreads], dtype=np.float64)
    personas, number = len(counts), counts.sum()
    of_seeds = pool_seed_variance(spreads)
    if personas < 2 or of_seeds is None:
        return None
    means = np.array([one.mean for one in spreads])
    between = float(np.sum(counts * (means - counts @ means / number) ** 2)) / (personas - 1)
    usual = (number - counts @ counts / number) / (personas - 1)
    of_personas = max(0.0, (between - of_seeds) / usual)
    of_mean = of_personas / personas + of_seeds / number
    return float(of_seeds / number / of_mean) if of_mean > 1e-12 else None


class PersonSums:
    """Adds up whole numbers of each person, under several keys.

    Values of one person are in a dictionary until another person comes, then in arrays. So least
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

    def list_ratios(self, key: Key) -> list[Ratio]:
        """Return each person's two numbers under a key, as numerator and denominator."""
        return [Ratio(*numbers) for _, numbers in self.items(key)]

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


class PersonTable:
    """Whole numbers of persons, and the spread of their seeds: a row for each person.

    Args:
        width: how many whole numbers there are.
    """

    def __init__(self, width: int) -> None:
        self._persons: list[Person] = []
        self._numbers = tuple(array("q") for _ in range(width))
        self._seeds, self._means, self._squares = array("q"), array("d"), array("d")

    def add(self, person: Person, numbers: Sequence[int], values: Sequence[float]) -> None:
        """Add a person.

        Args:
            person: who was not added before.
            values: one of each seed; their spread is kept.
        """
        self._persons.append(person)
        for column, number in zip(self._numbers, numbers, strict=True):
            column.append(number)
        spread = measure_spread(values)
        self._seeds.append(spread.seeds)
        self._means.append(spread.mean)
        self._squares.append(spread.squares)

    def merge(self, other: PersonTable) -> None:
        """Add the persons of another table. From then on, persons are in the order of their names.

        Raises:
            ValueError: a person is in both.
        """
        persons = [*self._persons, *other._persons]
        order = sorted(range(len(persons)), key=persons.__getitem__)
        self._persons = [persons[place] for place in order]
        if any(one == two for one, two in zip(self._persons, self._persons[1:], strict=False)):
            raise ValueError("conversations of one persona were counted in two parts")
        pairs = zip((*self._numbers, self._seeds), (*other._numbers, other._seeds), strict=True)
        for own, more in pairs:
            own.extend(more)
            own[:] = array("q", (own[place] for place in order))
        for measured, others in ((self._means, other._means), (self._squares, other._squares)):
            measured.extend(others)
            measured[:] = array("d", (measured[place] for place in order))

    def ratios(self, numerator: int, denominator: int) -> list[Ratio]:
        """Return two columns as ratios of the persons, where the second is not 0."""
        pairs = zip(self._numbers[numerator], self._numbers[denominator], strict=True)
        return [Ratio(over, under) for over, under in pairs if under]

    def seed_share(self) -> float | None:
        """Return the share of the variance that more seeds remove."""
        return combine_spreads(self._list_spreads())

    def seed_spreads(self) -> dict[Person, Spread]:
        """Return how the numbers of each person's seeds spread."""
        return dict(zip(self._persons, self._list_spreads(), strict=True))

    def _list_spreads(self) -> list[Spread]:
        return list(map(Spread, self._seeds, self._means, self._squares))

    def __len__(self) -> int:
        return len(self._persons)
