"""Charts of hallucinations per turn by turn: one a chatbot, a line a detector, all on one scale."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from hallulab.simulator.show.dots import choose_axis_steps
from hallulab.simulator.show.html import Box, Tick, render_part
from hallulab.simulator.statistics.intervals import Interval

BOX = Box(width=560.0, height=220.0, left=44.0, right=16.0, top=10.0, bottom=38.0)
"""Size of a chart, and the margins of its plot."""
_APART = 7.0
"""Distance of the dots of two detectors at one turn."""


@dataclass(frozen=True)
class DepthPoint:
    """What is drawn at one turn."""

    chatbot: str
    detector: int
    """Place of the detector, which chooses the colour."""
    turn: str
    value: float | None
    """The number; None: it is undefined."""
    ci95: Interval


@dataclass(frozen=True)
class DepthDot:
    """A dot with its interval."""

    x: float
    y: float
    low: float | None
    high: float | None
    title: str


@dataclass(frozen=True)
class DepthLine:
    """The dots of a detector."""

    detector: int
    """Its place, which chooses the colour."""
    path: str
    """A line through them, in SVG's form."""
    dots: tuple[DepthDot, ...]


@dataclass(frozen=True)
class DepthPlot:
    """A chart, ready to be drawn."""

    label: str
    """What it shows, for those who cannot see it."""
    x_ticks: tuple[Tick, ...]
    y_ticks: tuple[Tick, ...]
    lines: tuple[DepthLine, ...]


def draw_depths(points: Sequence[DepthPoint], detectors: Sequence[str]) -> list[tuple[str, str]]:
    """Return each chatbot with its chart as an SVG element.

    Args:
        points: what is drawn.
        detectors: their names.
    """
    return [
        (chatbot, render_part(__package__, "depth.html", plot=plot, box=BOX))
        for chatbot, plot in lay_out_depths(points, detectors)
    ]


def lay_out_depths(points: Sequence[DepthPoint], detectors: Sequence[str]) -> list[tuple[str, DepthPlot]]:
    """Lay out a chart for each chatbot, in their order."""
    turns = list(dict.fromkeys(point.turn for point in sorted(points, key=_order)))
    values = [value for point in points for value in (point.value, *(point.ci95 or ())) if value is not None]
    steps = choose_axis_steps(values, None)

    def place_y(value: float) -> float:
        return round(BOX.height - BOX.bottom - value / steps[-1] * (BOX.height - BOX.top - BOX.bottom), 2)

    def place_x(turn: str, beside: float = 0.0) -> float:
        return round(
            BOX.left + (turns.index(turn) + 0.5) / len(turns) * (BOX.width - BOX.left - BOX.right) + beside, 2
        )

    def place_dot(point: DepthPoint, value: float) -> DepthDot:
        ends = "" if point.ci95 is None else f", 95% interval {point.ci95[0]:.2f} to {point.ci95[1]:.2f}"
        return DepthDot(
            x=place_x(point.turn, (point.detector - (len(detectors) - 1) / 2) * _APART),
            y=place_y(value),
            low=None if point.ci95 is None else place_y(point.ci95[0]),
            high=None if point.ci95 is None else place_y(point.ci95[1]),
            title=f"{point.chatbot}, turn {point.turn}, {detectors[point.detector]}: {value:.2f}{ends}",
        )

    plots = []
    for chatbot in dict.fromkeys(point.chatbot for point in points):
        lines = []
        for detector in range(len(detectors)):
            own = [one for one in points if (one.chatbot, one.detector) == (chatbot, detector)]
            dots = tuple(
                place_dot(one, one.value) for one in sorted(own, key=_order) if one.value is not None
            )
            lines.append(DepthLine(detector, " ".join(f"{dot.x:g},{dot.y:g}" for dot in dots), dots))
        told = "; ".join(dot.title for line in lines for dot in line.dots)
        plots.append(
            (
                chatbot,
                DepthPlot(
                    label=f"HPT-1 by turn. {told}",
                    x_ticks=tuple(Tick(place_x(turn), turn) for turn in turns),
                    y_ticks=tuple(Tick(place_y(step), f"{step:g}") for step in steps),
                    lines=tuple(line for line in lines if line.dots),
                ),
            )
        )
    return plots


def _order(point: DepthPoint) -> int:
    """Return the first turn of a band."""
    return int(point.turn.split()[0])
