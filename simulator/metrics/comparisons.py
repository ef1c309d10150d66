"""Every two chatbots compared, on the same personas and seeds."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations

from hallulab.scenarios.transcript import Frozen
from hallulab.simulator.metrics.run_sums import KINDS, RATES, RateName, RunSums
from hallulab.simulator.statistics.differences import adjust_by_holm, compare_all_pairs
from hallulab.simulator.statistics.intervals import Interval, Rounded, explain_no_interval


class Comparison(Frozen):
    """Two chatbots on the same personas and seeds: a line of `comparisons` in `report.json`."""

    detector: str
    metric: RateName
    a: str
    b: str
    pairs: int
    """Personas that both have talked to with the same seeds; only these conversations enter."""
    difference: Rounded | None
    """Metric of `a` minus metric of `b`, over these."""
    ci95: Interval
    """Over personas; None: see `no_interval`."""
    no_interval: str | None
    """Why there is none."""
    p_value: Rounded | None
    """Paired test, two-sided, by flipped signs of the personas' pseudo-values; None with fewer than two
    personas."""
    seed_share: Rounded | None
    """Share of the variance of the difference that more seeds of the same personas can remove at most
    (`simulator/statistics/sums.py`); the rest takes more personas. None: no persona has two seeds."""
    p_holm: Rounded | None
    """Adjusted by Holm over all pairs of chatbots under this detector and metric."""
    floor: Rounded | None
    """The noise floor: how far halves of one chatbot's conversations differ that have the same personas and
    other seeds (`HalfSums`), the mean of both chatbots. None: a persona has one seed."""


def compare(sums: RunSums, chatbots: Sequence[str], detectors: Sequence[str]) -> tuple[Comparison, ...]:
    """Compare every two chatbots by every metric under every detector.

    Raises:
        UsageError: a chatbot has two conversations with the same scenario, persona and seed.
    """
    found: list[Comparison] = []
    names = list(combinations(chatbots, 2))
    for detector in detectors:
        keys = [(metric, *name) for metric in RATES for name in names]
        pairs = [sums.pair(a, b, detector, metric) for metric, a, b in keys]
        tested = compare_all_pairs(
            [(*both.ratios(), KINDS[metric]) for both, (metric, _, _) in zip(pairs, keys, strict=True)]
        )
        for number, metric in enumerate(RATES):
            start = number * len(names)
            differences = tested[start : start + len(names)]
            shares = [both.seed_share() for both in pairs[start : start + len(names)]]
            halves = {name: sums.halves(name, detector).difference(metric) for name in chatbots}
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
                    no_interval=explain_no_interval(item.pairs, found={"difference": item.ci95}),
                    p_value=item.p_value,
                    seed_share=share,
                    p_holm=p_holm,
                    floor=_average(halves[a], halves[b]),
                )
                for (a, b), item, share, p_holm in zip(names, differences, shares, adjusted, strict=True)
            )
    return tuple(found)


def _average(one: float | None, other: float | None) -> float | None:
    return None if one is None or other is None else (one + other) / 2
