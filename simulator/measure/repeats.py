"""Halves of a run by its repeats: their difference is noise, as nothing but the seed differs."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable

from hallulab.simulator.measure.metrics import Pairing

HALVES = "halves by repeat: each persona's seeds in turn"
"""What `split_by_repeat` does, for people."""


def split_by_repeat(users: Iterable[Pairing]) -> tuple[frozenset[Pairing], frozenset[Pairing]] | None:
    """Put each persona's seeds in turn into the one and the other half.

    None where there is nobody, or a persona has a single seed.

    >>> one, other = split_by_repeat([("s", "asha", 0), ("s", "asha", 1), ("s", "asha", 2)]) or ((), ())
    >>> sorted(one), sorted(other)
    ([('s', 'asha', 0), ('s', 'asha', 2)], [('s', 'asha', 1)])
    """
    seeds: dict[tuple[str, str], list[Pairing]] = defaultdict(list)
    for user in sorted(set(users)):
        seeds[user[:2]].append(user)
    if not seeds or min(map(len, seeds.values())) < 2:
        return None
    first, second = ({user for own in seeds.values() for user in own[start::2]} for start in (0, 1))
    return frozenset(first), frozenset(second)
