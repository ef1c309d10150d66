"""A chart of the differences between two runs: a dot and its interval for each chatbot and detector."""

from __future__ import annotations

from collections.abc import Sequence

from hallulab.simulator.compare.differences import DifferenceLine
from hallulab.simulator.compare.sentences import render_line
from hallulab.simulator.show.charts import DotPoint, choose_steps_around_zero, draw_dots

TITLE = "Δ HPT-1, after minus before: left of 0 is better"


def draw_differences(lines: Sequence[DifferenceLine]) -> str:
    """Return the differences of HPT-1 as an SVG element, 0 in the middle."""
    points = [
        DotPoint(
            line.chatbot,
            line.detector,
            line.difference,
            line.ci95,
            f"{line.chatbot}, {line.detector}: {render_line(line)}",
        )
        for line in lines
        if line.metric == "hpt_1"
    ]
    ends = [value for point in points for value in (point.value, *(point.ci95 or ())) if value is not None]
    return draw_dots(
        TITLE, points, choose_steps_around_zero(ends), lambda step: f"{step:+g}" if step else "0"
    )
