"""Paired differences between chatbots, the one that is found best, and the personas needed."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import combinations
from statistics import fmean, stdev

from hallulab.scenarios.transcript import Frozen
from hallulab.simulator.metrics.hallucinations import Pairing, Row
from hallulab.simulator.metrics.pairs import RATES, RateName
from hallulab.simulator.metrics.run_sums import RunSums
from hallulab.simulator.statistics.intervals import (
    LEAST_FOR_INTERVAL,
    Interval,
    Ratio,
    Rounded,
    adjust_by_holm,
    compare_all_pairs,
    explain_no_interval,
)

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
    """Paired bootstrap over personas; None: see `no_interval`."""
    no_interval: str | None
    """Why there is none."""
    p_value: Rounded | None
    """Paired permutation test, two-sided, which exchanges all conversations of a persona together; None with
    fewer than two personas."""
    seed_share: Rounded | None
    """Share of the variance of the difference that more seeds of the same personas can remove at most
    (`simulator/statistics/intervals.py`); the rest takes more personas. None: no persona has two seeds."""
    p_holm: Rounded | None
    """Adjusted by Holm over all pairs of chatbots under this detector and metric."""
    floor: Rounded | None
    """The noise floor: how far halves of one chatbot's conversations differ that have the same personas and
    other seeds (`hallulab.simulator.metrics.comparison`), the mean of both chatbots. None: a persona has one
    seed."""


def compare(sums: RunSums, chatbots: Sequence[str], detectors: Sequence[str]) -> tuple[Comparison, ...]:
    """Compare every two chatbots by every metric under every detector.

    Raises:
        UsageError: a chatbot has two conversations with the same scenario, persona and seed.
    """
    found: list[Comparison] = []
    names = list(combinations(chatbots, 2))
    for detector in detectors:
        held = [sums.pair(a, b, detector, metric) for metric in RATES for a, b in names]
        tested = compare_all_pairs([both.ratios() for both in held])
        for number, metric in enumerate(RATES):
            start = number * len(names)
            differences = tested[start : start + len(names)]
            shares = [both.seed_share() for both in held[start : start + len(names)]]
            floors = {name: sums.halves(name, detector).difference(metric) for name in chatbots}
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
                    floor=_compute_mean(floors[a], floors[b]),
                )
                for (a, b), item, share, p_holm in zip(names, differences, shares, adjusted, strict=True)
            )
    return tuple(found)


def _compute_mean(one: float | None, other: float | None) -> float | None:
    return None if one is None or other is None else (one + other) / 2


ALPHA = 0.05
"""Two-sided level of the test."""
POWER = 0.8
"""Chance that the test finds a difference as large as the measured one."""


@dataclass(frozen=True)
class Estimate:
    """A number of pairs, or why there is none."""

    pairs: int | None
    reason: str | None
    """Why that cannot be estimated; None where it can."""


_EQUAL = "on average they do not differ at all"


def estimate_pairs_needed(first: Sequence[Ratio], second: Sequence[Ratio]) -> Estimate:
    """Estimate how many pairs would tell two chatbots apart, from those measured.

    The standard formula for a paired comparison, rounded up: n = ((z(1 - α/2) + z(power)) · sd / mean)², with
    mean and sample standard deviation (n - 1) of the pairs' differences. A pair is a persona, and its
    difference that of the two chatbots' own ratios there, so long conversations do not weigh more here. α is
    not divided by the number of comparisons, because Holm's correction of one depends on all others. So this
    is the least: the power is that of one test alone.

    Args:
        first: ratios of one chatbot; `first[i]` and `second[i]` are a pair.
        second: ratios of the other.
    """
    differences = [
        one.numerator / one.denominator - two.numerator / two.denominator
        for one, two in zip(first, second, strict=True)
    ]
    if len(differences) < 2:
        return Estimate(None, "fewer than two personas can be compared")
    difference, spread = fmean(differences), stdev(differences)
    if math.isclose(difference, 0.0, abs_tol=1e-12):
        return Estimate(None, _EQUAL)
    if math.isclose(spread, 0.0, abs_tol=1e-12):
        return Estimate(None, "they differ by the same with every persona, so there is no spread to go by")
    return Estimate(math.ceil((_sum_quantiles() * spread / difference) ** 2), None)


def compute_least_pairs(comparisons: int) -> int:
    """Return the pairs below which so many tests give no p-value below `ALPHA` after Holm.

    The smallest p-value of n pairs is 2/2^n, and Holm multiplies the smallest one by the number of tests.
    """
    pairs = LEAST_FOR_INTERVAL
    while comparisons * 2 ** (1 - pairs) >= ALPHA:
        pairs += 1
    return pairs


def _sum_quantiles() -> float:
    """Return z(1 - α/2) + z(power), about 2.80."""
    from scipy.stats import norm

    return float(norm.ppf(1 - ALPHA / 2) + norm.ppf(POWER))


class Finding(Frozen):
    """One detector's result on all chatbots: an item of `build_findings` in `report.json`."""

    detector: str
    compared: int
    """Chatbots with a scored turn."""
    not_scored: tuple[str, ...]
    """Chatbots without one."""
    best: str | None = None
    """The chatbot whose HPT-1 is below every other one's, each time with p < 0.05 by the paired permutation
    test after Holm; None where there is none, or a chatbot was not scored."""
    lowest: tuple[str, ...] = ()
    """The chatbot with the lowest HPT-1, with those that tie with it and that the test does not tell from it,
    in the order of the rows. Empty where it is told from all others, and where fewer than two are scored."""
    nearest: tuple[str, ...] = ()
    """Where one alone is lowest: the lowest of those that the test does not tell from it, all that tie."""
    undecided: tuple[str, ...] = ()
    """The lowest and one of the nearest, or two of the lowest where several tie, in the order of the rows: of
    all such pairs the one that needs most personas. Empty where there is no such pair."""
    pairs: int | None = None
    """Personas on which these two are compared."""
    difference: float | None = None
    """Difference of their HPT-1 on these pairs."""
    seed_share: Rounded | None = None
    """Share of the variance of this difference that more seeds of the same personas can remove at most."""
    personas_needed: int | None = None
    """Personas with which one test of these two alone would tell them apart with a chance of 80%, with as
    many seeds each as now: see `estimate_pairs_needed`. After Holm's correction for the other pairs it takes
    this many or more. At least `least_personas`, and more than the test had."""
    not_estimated: str | None = None
    """Why that number cannot be estimated."""
    least_personas: int
    """Personas below which no test of so many chatbots can find a difference, whatever their seeds."""


def build_findings(
    sums: RunSums, rows: Sequence[Row], comparisons: Sequence[Comparison]
) -> tuple[Finding, ...]:
    """Make a finding for every detector, in the order of the rows.

    `personas_needed` is estimated for the chatbot with the lowest HPT-1 and the nearest that the test does
    not tell from it, since that pair usually needs most.

    Args:
        rows: of these sums.
        comparisons: of these sums.
    """
    return tuple(
        _build_finding(
            detector,
            sums,
            [row for row in rows if row.detector == detector],
            [line for line in comparisons if line.detector == detector and line.metric == "hpt_1"],
        )
        for detector in dict.fromkeys(row.detector for row in rows)
    )


def _build_finding(
    detector: str, sums: RunSums, rows: Sequence[Row], comparisons: Sequence[Comparison]
) -> Finding:
    rates = {row.chatbot: row.hpt_1 for row in rows if row.hpt_1 is not None}
    not_scored = tuple(row.chatbot for row in rows if row.hpt_1 is None)
    least = compute_least_pairs(len(comparisons))
    finding = Finding(detector=detector, compared=len(rates), not_scored=not_scored, least_personas=least)
    if len(rates) < 2:
        return finding
    lowest, *others = sorted(rates, key=lambda name: rates[name])
    undecided = [name for name in others if not _is_below(lowest, name, comparisons)]
    if not undecided:
        return finding if not_scored else finding.model_copy(update={"best": lowest})
    closest = rates[undecided[0]]
    tied = [name for name in undecided if rates[name] == closest]
    pairs = [_estimate_pair(lowest, name, detector, sums, comparisons) for name in tied]
    line, estimate = max(pairs, key=lambda pair: pair[1].pairs or 0)
    is_tie = closest == rates[lowest]
    return finding.model_copy(
        update={
            "lowest": tuple(name for name in rates if name == lowest or (is_tie and name in tied)),
            "nearest": () if is_tie else tuple(tied),
            "undecided": tuple(name for name in rates if name in (line.a, line.b)),
            "pairs": line.pairs,
            "difference": None if line.difference is None else abs(line.difference),
            "seed_share": line.seed_share,
            "personas_needed": (
                None if estimate.pairs is None else max(estimate.pairs, least, line.pairs + 1)
            ),
            "not_estimated": estimate.reason,
        }
    )


def _estimate_pair(
    one: str, other: str, detector: str, sums: RunSums, comparisons: Sequence[Comparison]
) -> tuple[Comparison, Estimate]:
    """Return the comparison of two chatbots, and how many pairs would tell them apart."""
    line = next(item for item in comparisons if {item.a, item.b} == {one, other})
    if line.difference == 0:
        return line, Estimate(None, _EQUAL)
    return line, estimate_pairs_needed(*sums.pair(line.a, line.b, detector, "hpt_1").ratios())


def _is_below(lower: str, higher: str, comparisons: Sequence[Comparison]) -> bool:
    """Return whether the test finds the HPT-1 of `lower` below that of `higher`."""
    line = next(item for item in comparisons if {item.a, item.b} == {lower, higher})
    if line.p_holm is None or line.difference is None or line.p_holm >= ALPHA:
        return False
    return line.difference < 0 if line.a == lower else line.difference > 0
