"""Pair the conversations of two chatbots by persona and seed."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Literal

from hallulab.scenarios.errors import UsageError
from hallulab.simulator.metrics.hallucinations import Pairing, Tally
from hallulab.simulator.statistics.intervals import Ratio, sum_by_cluster

RateName = Literal["hpt_1", "tokacc_1"]
"""A rate by which chatbots are compared."""

RATES: dict[RateName, Callable[[Tally], Ratio]] = {
    "hpt_1": lambda item: item.hpt,
    "tokacc_1": lambda item: item.tokacc,
}
"""What each is of a conversation."""

Both = dict[Pairing, tuple[Ratio, Ratio]]
"""Ratios of two chatbots by persona and seed."""

ByPlace = dict[tuple[Pairing, int], Ratio]
"""Ratios by persona and seed, and by the turn at which a conversation branches off, else -1."""


def pair_places(one: ByPlace, two: ByPlace) -> Both:
    """Return the ratios of two chatbots by persona and seed, at the places that both have.

    Conversations that branch off from the same one are added up, at turns at which both have a ratio.
    """
    shared = sorted(one.keys() & two.keys())
    sums = (sum_by_cluster((place[0], ratios[place]) for place in shared) for ratios in (one, two))
    pairings = dict.fromkeys(pairing for pairing, _ in shared)
    return dict(zip(pairings, zip(*sums, strict=True), strict=True))


def index_by_place(tallies: Sequence[Tally], rate: RateName) -> ByPlace:
    """Return the ratios of one chatbot's conversations.

    Raises:
        UsageError: it has two conversations with the same scenario, persona and seed.
    """
    ratios: ByPlace = {}
    for item in tallies:
        place = (item.pairing, -1 if item.branched_at is None else item.branched_at)
        if place in ratios:
            scenario, persona, seed = item.pairing
            raise UsageError(
                f"two conversations of a chatbot share persona {persona}, seed {seed}, scenario {scenario}: "
                "they cannot be paired with other chatbots'. Report on one configuration at a time."
            )
        ratio = RATES[rate](item)
        if ratio.denominator:
            ratios[place] = ratio
    return ratios
