"""Shares of answered replies: a chatbot that answers less is not better where it hallucinates less."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from itertools import permutations

from hallulab.simulator.statistics.intervals import Ratio, compute_ratio_of_sums

LESS = 0.05
"""A chatbot whose share of answered replies is lower by more than this answers less."""


def answers_less(one: float | None, other: float | None) -> bool:
    """Return whether a share of answered replies is lower than another one.

    The shares themselves are compared, not by a test: with few personas a test would find too little, and a
    chatbot that declines a lot would win. A chatbot without a reply that answers or declines has no share,
    and answers less than one that has.

    >>> answers_less(0.9, 1.0), answers_less(0.95, 1.0), answers_less(None, 1.0), answers_less(None, None)
    (True, False, True, False)
    """
    if other is None:
        return False
    return one is None or other - one > LESS + 1e-9


class AnsweredShares:
    """Shares of answered replies of every two chatbots, over the persons that both talked to."""

    def __init__(self) -> None:
        self._counts: dict[tuple[str, str], list[Ratio]] = defaultdict(list)
        """By a chatbot and another one: what the first answered of each person."""

    def add(self, answered: Mapping[str, Ratio]) -> None:
        """Take a person's answered replies over those that answer or decline, by chatbot."""
        for one, other in permutations(answered, 2):
            self._counts[one, other].append(answered[one])

    def share(self, one: str, other: str) -> float | None:
        """Return the share of `one` over the persons that both talked to; None: there are no replies."""
        return compute_ratio_of_sums(self._counts[one, other])
