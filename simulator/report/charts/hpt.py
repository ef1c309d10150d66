"""The chart of hallucinations per turn."""

from __future__ import annotations

from hallulab.simulator.show.dots import DotChart


class HallucinationChart(DotChart):
    """Draws HPT-1."""

    TITLE = "Hallucinations per turn (HPT-1), lower is better"
    ORDER = 10
    FIELD = "hpt_1"
