"""The lines of a gate: each chatbot under each detector that both runs have, tested against the baseline.

A persona's conversations of the run and of the baseline are a pair. If nothing was changed but seeds, the two
could be exchanged; the paired permutation test of `hallulab.simulator.statistics.intervals` asks how often an
exchange gives a difference as large. Exchanging all pairs turns the sign of the difference, so the
distribution is symmetric, and half of the two-sided p-value is the one-sided one. It is held against half of
the two-sided 5% that all other tests here use. So a chatbot that nobody changed is blocked in at most 2.5% of
runs, however many lines are tested.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from hallulab.simulator.compare.differences import DifferenceLine
from hallulab.simulator.gate.result import GateLine
from hallulab.simulator.gate.totals import LineKey, Totals
from hallulab.simulator.metrics.comparison import ALPHA, compute_least_pairs
from hallulab.simulator.statistics.intervals import adjust_by_holm

LEVEL = ALPHA / 2
"""One-sided level of the test, over all lines together."""


@dataclass(frozen=True)
class OneSided:
    """The test of one line."""

    pairs: int
    """Its pairs; 0 where personas cannot be paired."""
    p_worse: float | None
    """One-sided and adjusted; None: there is no test."""
    needed: int
    """Pairs below which it cannot find anything."""


def find_worse(lines: Sequence[DifferenceLine]) -> list[OneSided]:
    """Test whether each line is worse than before, by Holm over all of them.

    Args:
        lines: HPT-1 of the run against the baseline.
    """
    halves = [_halve_p(line) for line in lines]
    needed = compute_least_pairs(max(1, sum(half is not None for half in halves)))
    return [
        OneSided(line.personas if line.paired else 0, p_worse, needed)
        for line, p_worse in zip(lines, adjust_by_holm(halves), strict=True)
    ]


def _halve_p(line: DifferenceLine) -> float | None:
    """Return the one-sided p-value of a paired line, 1 where it is not worse; None: there is no test."""
    if not line.paired or line.p_value is None:
        return None
    return line.p_value / 2 if line.harm > 0 else 1.0


def build_lines(
    differences: Sequence[DifferenceLine], before: Mapping[LineKey, Totals], now: Mapping[LineKey, Totals]
) -> tuple[GateLine, ...]:
    """Build a line for each chatbot under each detector that both runs have.

    Args:
        differences: of the run against the baseline.
        before: totals of the baseline.
        now: totals of the run.
    """
    held = [line for line in differences if line.metric == "hpt_1"]
    tested = find_worse(held)
    lines = [
        GateLine(
            chatbot=line.chatbot,
            detector=line.detector,
            personas=test.pairs,
            personas_needed=test.needed,
            before=line.before,
            now=line.after,
            difference=line.difference,
            ci95=line.ci95,
            p_worse=test.p_worse,
            hpt_1=now[line.chatbot, line.detector].hpt_1,
            coverage_before=before[line.chatbot, line.detector].coverage,
            coverage=now[line.chatbot, line.detector].coverage,
        )
        for line, test in zip(held, tested, strict=True)
    ]
    order = list(now)
    return tuple(sorted(lines, key=lambda line: order.index((line.chatbot, line.detector))))
