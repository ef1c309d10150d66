"""Paired differences between all chatbots, under each detector."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import combinations
from typing import Literal

from hallulab.scenarios.errors import UsageError
from hallulab.scenarios.transcript import Frozen
from hallulab.simulator.measure.metrics import Pairing, Person, Tallies, Tally
from hallulab.simulator.measure.numbers import Interval, Rounded
from hallulab.simulator.measure.repeats import split_by_repeat
from hallulab.simulator.measure.statistics import (
    Ratio,
    adjust_by_holm,
    compare_all_pairs,
    compute_ratio_of_sums,
    explain_no_interval,
    sum_by_cluster,
)
from hallulab.simulator.measure.variance import seed_share

Metric = Literal["hpt_1", "tokacc_1"]

_RATIOS: dict[Metric, Callable[[Tally], Ratio]] = {
    "hpt_1": lambda item: item.hpt,
    "tokacc_1": lambda item: item.tokacc,
}


class Comparison(Frozen):
    """Two chatbots on the same personas and seeds: a line of `comparisons` in `report.json`."""

    detector: str
    """Name of the detector."""
    metric: Metric
    """The metric compared."""
    a: str
    """First chatbot."""
    b: str
    """Second chatbot."""
    pairs: int
    """Personas that both have talked to with the same seeds; only these conversations enter."""
    difference: Rounded | None
    """Metric of `a` minus metric of `b`, over these."""
    ci95: Interval
    """Paired bootstrap over personas; None with fewer than `LEAST_FOR_INTERVAL`."""
    no_interval: str | None
    """Why there is none."""
    p_value: Rounded | None
    """Paired permutation test, two-sided, which exchanges all conversations of a persona together; None with
    fewer than two personas."""
    seed_share: Rounded | None
    """Share of the variance of the difference that more seeds of the same personas can remove at most
    (`hallulab.simulator.measure.variance`); the rest takes more personas. None: no persona has two seeds."""
    p_holm: Rounded | None
    """Adjusted by Holm over all pairs of chatbots under this detector and metric."""
    floor: Rounded | None
    """The noise floor: how far halves of one chatbot's conversations differ that have the same personas and
    other seeds (`hallulab.simulator.measure.repeats`), the mean of both chatbots. None: a persona has one
    seed."""


def compare(tallies: Tallies, chatbots: Sequence[str], detectors: Sequence[str]) -> tuple[Comparison, ...]:
    """Compare every two chatbots by every metric under every detector.

    Raises:
        UsageError: a chatbot has two conversations with the same scenario, persona and seed.
    """
    found: list[Comparison] = []
    names = list(combinations(chatbots, 2))
    for detector in detectors:
        held = [
            _sum_by_pairing(tallies[a, detector], tallies[b, detector], metric)
            for metric in _RATIOS
            for a, b in names
        ]
        tested = compare_all_pairs([_sum_by_persona(both) for both in held])
        for number, metric in enumerate(_RATIOS):
            start = number * len(names)
            differences = tested[start : start + len(names)]
            shares = [seed_share(_compute_differences(both)) for both in held[start : start + len(names)]]
            floors = {name: _compute_noise_floor(tallies[name, detector], metric) for name in chatbots}
            adjusted = adjust_by_holm([item.p_value for item in differences])
            found.extend(
                Comparison(
                    detector=detector,
                    metric=metric,
                    a=a,
                    b=b,
                    pairs=item.pairs,
                    difference=item.difference,
                    ci95=item.ci95,
                    no_interval=explain_no_interval(item.pairs),
                    p_value=item.p_value,
                    seed_share=share,
                    p_holm=p_holm,
                    floor=_compute_mean(floors[a], floors[b]),
                )
                for (a, b), item, share, p_holm in zip(names, differences, shares, adjusted, strict=True)
            )
    return tuple(found)


def _compute_noise_floor(tallies: Sequence[Tally], metric: Metric) -> float | None:
    """Return the difference between halves of one chatbot's conversations; None where one has no number."""
    halves = split_by_repeat(item.pairing for item in tallies)
    if halves is None:
        return None
    one, other = (
        compute_ratio_of_sums([_RATIOS[metric](item) for item in tallies if item.pairing in half])
        for half in halves
    )
    return None if one is None or other is None else abs(one - other)


def _compute_mean(one: float | None, other: float | None) -> float | None:
    return None if one is None or other is None else (one + other) / 2


def pair_ratios(
    first: Sequence[Tally], second: Sequence[Tally], metric: Metric
) -> tuple[list[Ratio], list[Ratio]]:
    """Return the ratios of two chatbots by persona, on the personas and seeds that both have, in one order.

    Conversations with all seeds of a persona are added up, and those that branch off from the same one at
    turns at which both have a ratio.

    Raises:
        UsageError: a chatbot has two conversations with the same scenario, persona and seed.
    """
    return _sum_by_persona(_sum_by_pairing(first, second, metric))


_Both = dict[Pairing, tuple[Ratio, Ratio]]
"""Ratios of two chatbots by persona and seed."""


def _sum_by_pairing(first: Sequence[Tally], second: Sequence[Tally], metric: Metric) -> _Both:
    one, two = _index_by_place(first, metric), _index_by_place(second, metric)
    shared = sorted(one.keys() & two.keys())
    sums = (sum_by_cluster((place[0], ratios[place]) for place in shared) for ratios in (one, two))
    pairings = dict.fromkeys(pairing for pairing, _ in shared)
    return dict(zip(pairings, zip(*sums, strict=True), strict=True))


def _sum_by_persona(both: _Both) -> tuple[list[Ratio], list[Ratio]]:
    first, second = (sum_by_cluster((key[:2], pair[at]) for key, pair in both.items()) for at in (0, 1))
    return first, second


def _compute_differences(both: _Both) -> Iterator[tuple[Person, float]]:
    """Yield (persona, difference of the two chatbots' ratios) for each persona and seed."""
    for pairing, (a, b) in both.items():
        yield pairing[:2], a.numerator / a.denominator - b.numerator / b.denominator


def _index_by_place(tallies: Sequence[Tally], metric: Metric) -> dict[tuple[Pairing, int], Ratio]:
    """Return ratios by persona and seed, and by the turn at which a conversation branches off, else -1."""
    ratios: dict[tuple[Pairing, int], Ratio] = {}
    for item in tallies:
        place = (item.pairing, -1 if item.branched_at is None else item.branched_at)
        if place in ratios:
            scenario, persona, seed = item.pairing
            raise UsageError(
                f"two conversations of a chatbot share persona {persona}, seed {seed}, scenario {scenario}: "
                "they cannot be paired with other chatbots'. Report on one configuration at a time."
            )
        ratio = _RATIOS[metric](item)
        if ratio.denominator:
            ratios[place] = ratio
    return ratios
