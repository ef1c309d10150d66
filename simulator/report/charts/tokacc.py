"""The chart of token accuracy."""

from __future__ import annotations

from hallulab.simulator.show.dots import DotChart


class AccuracyChart(DotChart):
    """Draws TokAcc-1."""

    TITLE = "Token accuracy (TokAcc-1), higher is better"
    ORDER = 20
    FIELD = "tokacc_1"
    SCALE = 100
    UNIT = "%"
    UPPER = 100
