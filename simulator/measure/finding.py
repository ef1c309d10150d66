"""The chatbot that hallucinates least under a detector, by the paired tests."""

from __future__ import annotations

from collections.abc import Sequence

from hallulab.scenarios.transcript import Frozen
from hallulab.simulator.measure.compare import Comparison, pair_ratios
from hallulab.simulator.measure.metrics import Row, Tallies
from hallulab.simulator.measure.numbers import Rounded
from hallulab.simulator.measure.sample_size import ALPHA, compute_least_pairs, estimate_pairs_needed


class Finding(Frozen):
    """One detector's result on all chatbots: an item of `build_findings` in `report.json`."""

    detector: str
    """Name of the detector."""
    compared: int
    """Chatbots with a scored turn."""
    not_scored: tuple[str, ...]
    """Chatbots without one."""
    best: str | None = None
    """The chatbot whose HPT-1 is below every other one's, each time with p < 0.05 by the paired permutation
    test after Holm; None where there is none, or a chatbot was not scored."""
    undecided: tuple[str, ...] = ()
    """The chatbot with the lowest HPT-1, and the lowest of those that the test does not tell from it, in the
    order of the rows. Empty where there is no such pair."""
    pairs: int | None = None
    """Personas on which these two are compared."""
    difference: float | None = None
    """Difference of their HPT-1 on these pairs."""
    seed_share: Rounded | None = None
    """Share of the variance of this difference that more seeds of the same personas can remove at most."""
    personas_needed: int | None = None
    """Personas that would tell these two apart with a chance of 80%, with as many seeds each as now: see
    `sample_size.pairs_needed`. At least `least_personas`, and more than the test had."""
    not_estimated: str | None = None
    """Why that number cannot be estimated."""
    least_personas: int
    """Personas below which no test of so many chatbots can find a difference, whatever their seeds."""


def build_findings(
    tallies: Tallies, rows: Sequence[Row], comparisons: Sequence[Comparison]
) -> tuple[Finding, ...]:
    """Make a finding for every detector, in the order of the rows.

    `personas_needed` is estimated for the chatbot with the lowest HPT-1 and the runner-up, since that
    pair usually needs most. Ties go to the one that comes first.

    Args:
        rows: of these tallies.
        comparisons: of these tallies.
    """
    return tuple(
        _build_finding(
            detector,
            tallies,
            [row for row in rows if row.detector == detector],
            [line for line in comparisons if line.detector == detector and line.metric == "hpt_1"],
        )
        for detector in dict.fromkeys(row.detector for row in rows)
    )


def _build_finding(
    detector: str, tallies: Tallies, rows: Sequence[Row], comparisons: Sequence[Comparison]
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
    runner_up = undecided[0]
    first, second = pair_ratios(tallies[lowest, detector], tallies[runner_up, detector], "hpt_1")
    line = next(item for item in comparisons if {item.a, item.b} == {lowest, runner_up})
    estimate = estimate_pairs_needed(first, second)
    return finding.model_copy(
        update={
            "undecided": tuple(name for name in rates if name in (lowest, runner_up)),
            "pairs": line.pairs,
            "difference": None if line.difference is None else abs(line.difference),
            "seed_share": line.seed_share,
            "personas_needed": (
                None if estimate.pairs is None else max(estimate.pairs, least, line.pairs + 1)
            ),
            "not_estimated": estimate.reason,
        }
    )


def _is_below(lower: str, higher: str, comparisons: Sequence[Comparison]) -> bool:
    """Return whether the test finds the HPT-1 of `lower` below that of `higher`."""
    line = next(item for item in comparisons if {item.a, item.b} == {lower, higher})
    if line.p_holm is None or line.difference is None or line.p_holm >= ALPHA:
        return False
    return line.difference < 0 if line.a == lower else line.difference > 0
