"""Charts of lines and points on a page: their geometry, and their SVG elements.

Our own SVG template draws them; `hallulab.simulator.show.html` gives the reasons.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from hallulab.simulator.show.html import Box, Tick, render_part

BOX = Box(width=440.0, height=320.0, left=52.0, right=16.0, top=10.0, bottom=46.0)
"""Size of a chart, and the margins of its plot."""
_UNIT = (0.0, 0.2, 0.4, 0.6, 0.8, 1.0)

Point = tuple[float, float]


@dataclass(frozen=True)
class CurveLine:
    """A curve."""

    path: str
    """Points in SVG's form: `x,y x,y`."""
    detector: int | None
    """Position of the detector, which chooses the colour; None: a reference line."""
    title: str


@dataclass(frozen=True)
class CurvePoint:
    """A single point."""

    x: float
    y: float
    detector: int
    """Position of the detector, which chooses the colour."""
    title: str
    optimal: bool = False
    """On the Pareto front: a ring marks it."""


@dataclass(frozen=True)
class Plot:
    """A chart, ready to be drawn."""

    title: str
    x_label: str
    y_label: str
    x_ticks: tuple[Tick, ...]
    y_ticks: tuple[Tick, ...]
    lines: tuple[CurveLine, ...]
    marks: tuple[CurvePoint, ...] = ()


def build_plot(
    title: str,
    x_label: str,
    y_label: str,
    lines: Sequence[CurveLine],
    marks: Sequence[CurvePoint],
    x_ticks: Sequence[tuple[float, float]] | None = None,
) -> Plot:
    """Make a chart of values in [0, 1], with vertical grid lines at (place, number), by default every 0.2."""
    vertical = [(value, value) for value in _UNIT] if x_ticks is None else x_ticks
    return Plot(
        title,
        x_label,
        y_label,
        tuple(Tick(scale_x(place), f"{value:g}") for place, value in vertical),
        tuple(Tick(scale_y(value), f"{value:g}") for value in _UNIT),
        tuple(lines),
        tuple(marks),
    )


def draw_plots(plots: Iterable[Plot]) -> list[tuple[str, str]]:
    """Return the title of each chart, and the chart as an SVG element, as `Figures` takes them."""
    return [(plot.title, render_part(__package__, "curves.html", plot=plot, box=BOX)) for plot in plots]


def format_path(points: Sequence[Point]) -> str:
    """Return the points, which are in [0, 1], in SVG's form."""
    return " ".join(f"{scale_x(x):g},{scale_y(y):g}" for x, y in points)


def scale_x(value: float) -> float:
    """Return the horizontal place of a value in [0, 1]."""
    return round(BOX.left + value * (BOX.width - BOX.left - BOX.right), 2)


def scale_y(value: float) -> float:
    """Return the vertical place of a value in [0, 1]; places grow downwards."""
    return round(BOX.height - BOX.bottom - value * (BOX.height - BOX.top - BOX.bottom), 2)
