"""The lines of a gate: each chatbot under each detector that both runs have, tested against the baseline."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from hallulab.simulator.compare.differences import DifferenceLine
from hallulab.simulator.gate.result import GateLine
from hallulab.simulator.gate.significance import find_worse
from hallulab.simulator.gate.totals import LineKey, Totals


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
