"""The chatbot that hallucinates least of those that answer as much, and the personas that tell two apart.

A chatbot that declines everything has no hallucination. So a chatbot whose share of answered replies is more
than `LESS` below that of another one with more hallucinations is set aside: it is neither best, nor does
anybody have to be better than it. The rest are ranked by HPT-1 and the paired test.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from hallulab.scenarios.transcript import Frozen
from hallulab.simulator.metrics.comparisons import Comparison
from hallulab.simulator.metrics.hallucinations import Row
from hallulab.simulator.metrics.run_sums import RunSums
from hallulab.simulator.statistics.answering import answers_less
from hallulab.simulator.statistics.differences import ALPHA
from hallulab.simulator.statistics.intervals import Rounded
from hallulab.simulator.statistics.planning import PairsPlan, compute_least_pairs, plan_pairs
from hallulab.simulator.statistics.sequence import MARGIN


class Finding(Frozen):
    """One detector's result on all chatbots: an item of `build_findings` in `report.json`."""

    detector: str
    compared: int
    """Chatbots with a scored turn."""
    not_scored: tuple[str, ...]
    """Chatbots without one."""
    best: str | None = None
    """The chatbot whose HPT-1 is below that of every other one that is ranked, each time with p < 0.05 by the
    paired test after Holm; None where there is none, or a chatbot was not scored."""
    set_aside: tuple[str, ...] = ()
    """Chatbots that are not ranked, the lowest HPT-1 first: each answers less than one that is ranked, and
    has no more hallucinations."""
    lowest: tuple[str, ...] = ()
    """Of those ranked, the chatbot with the lowest HPT-1, with those that tie with it and do not differ
    significantly, in the order of the rows. Empty where it differs from all others, and where fewer than
    two are ranked."""
    nearest: tuple[str, ...] = ()
    """Where one alone is lowest: the lowest of those not significantly different, all that tie."""
    undecided: tuple[str, ...] = ()
    """The lowest and one of the nearest, or two of the lowest where several tie, in the order of the rows: of
    all such pairs the one that needs most personas. Empty where there is no such pair."""
    pairs: int | None = None
    """Personas on which these two are compared."""
    difference: float | None = None
    """Difference of their HPT-1 on these pairs."""
    seed_share: Rounded | None = None
    """Share of the variance of this difference that more seeds of the same personas can remove at most."""
    margin: Rounded = MARGIN
    """Difference in HPT-1 that the number of personas is planned for."""
    personas_needed: int | None = None
    """Personas with which one test of these two alone would tell them apart with a chance of 80% if they
    differ by `margin`, with as many seeds each as now: see `plan_pairs`. After Holm's correction for the
    other pairs it takes this many or more. At least `least_personas`."""
    not_planned: str | None = None
    """Why there is no such number."""
    least_personas: int
    """Personas below which no test of so many chatbots can find a difference, whatever their seeds."""


def build_findings(
    sums: RunSums, rows: Sequence[Row], comparisons: Sequence[Comparison], margin: float = MARGIN
) -> tuple[Finding, ...]:
    """Make a finding for every detector, in the order of the rows.

    `personas_needed` is planned for the chatbot with the lowest HPT-1 and the nearest one that does not
    differ significantly, since that pair usually needs most.

    Args:
        rows: of these sums.
        comparisons: of these sums.
        margin: difference in HPT-1 that it is planned for.
    """
    return tuple(
        _build_finding(
            detector,
            sums,
            [row for row in rows if row.detector == detector],
            [line for line in comparisons if line.detector == detector and line.metric == "hpt_1"],
            margin,
        )
        for detector in dict.fromkeys(row.detector for row in rows)
    )


def _build_finding(
    detector: str, sums: RunSums, rows: Sequence[Row], comparisons: Sequence[Comparison], margin: float
) -> Finding:
    scored = {row.chatbot: (row.hpt_1, row.answered) for row in rows if row.hpt_1 is not None}
    set_aside = find_set_aside(scored)
    rates = {name: hpt for name, (hpt, _) in scored.items() if name not in set_aside}
    not_scored = tuple(row.chatbot for row in rows if row.hpt_1 is None)
    least = compute_least_pairs(len(comparisons))
    finding = Finding(
        detector=detector,
        compared=len(scored),
        not_scored=not_scored,
        set_aside=set_aside,
        margin=margin,
        least_personas=least,
    )
    if len(rates) < 2:
        return finding
    lowest, *others = sorted(rates, key=lambda name: rates[name])
    undecided = [name for name in others if not _is_below(lowest, name, comparisons)]
    if not undecided:
        return finding if not_scored else finding.model_copy(update={"best": lowest})
    closest = rates[undecided[0]]
    tied = [name for name in undecided if rates[name] == closest]
    pairs = [_plan_pair(lowest, name, detector, sums, comparisons, margin) for name in tied]
    line, plan = max(pairs, key=lambda pair: pair[1].pairs or 0)
    is_tie = closest == rates[lowest]
    return finding.model_copy(
        update={
            "lowest": tuple(name for name in rates if name == lowest or (is_tie and name in tied)),
            "nearest": () if is_tie else tuple(tied),
            "undecided": tuple(name for name in rates if name in (line.a, line.b)),
            "pairs": line.pairs,
            "difference": None if line.difference is None else abs(line.difference),
            "seed_share": line.seed_share,
            "personas_needed": None if plan.pairs is None else max(plan.pairs, least),
            "not_planned": plan.reason,
        }
    )


def find_set_aside(scored: Mapping[str, tuple[float, float | None]]) -> tuple[str, ...]:
    """Return the chatbots that are not ranked, because they answer less than one that is.

    >>> find_set_aside({"silent": (0.0, 0.1), "vanilla": (0.4, 1.0), "editor": (0.2, 0.98)})
    ('silent',)

    Args:
        scored: HPT and share of answered replies of each chatbot with a scored turn.
    """
    shares = {name: answered for name, (_, answered) in scored.items()}
    left = sorted(scored, key=lambda name: (scored[name][0], shares[name] is not None, shares[name] or 0.0))
    aside = []
    while any(answers_less(shares[left[0]], shares[other]) for other in left[1:]):
        aside.append(left.pop(0))
    return tuple(aside)


def _plan_pair(
    one: str, other: str, detector: str, sums: RunSums, comparisons: Sequence[Comparison], margin: float
) -> tuple[Comparison, PairsPlan]:
    """Return the comparison of two chatbots, and the pairs that would tell them apart."""
    line = next(item for item in comparisons if {item.a, item.b} == {one, other})
    return line, plan_pairs(*sums.pair(line.a, line.b, detector, "hpt_1").ratios(), margin)


def _is_below(lower: str, higher: str, comparisons: Sequence[Comparison]) -> bool:
    """Return whether the test finds the HPT-1 of `lower` below that of `higher`."""
    line = next(item for item in comparisons if {item.a, item.b} == {lower, higher})
    if line.p_holm is None or line.difference is None or line.p_holm >= ALPHA:
        return False
    return line.difference < 0 if line.a == lower else line.difference > 0


class ComparisonSection(Frozen):
    """Fields of `report.json`."""

    findings: tuple[Finding, ...]
    """Which chatbot hallucinates least, by detector."""
    comparisons: tuple[Comparison, ...]
    """Every two chatbots under each detector."""
