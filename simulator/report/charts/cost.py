"""The chart of cost against quality."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from hallulab.simulator.measure.hallucinations import Row
from hallulab.simulator.measure.self_judging import mark
from hallulab.simulator.report.charts.chart import Chart
from hallulab.simulator.report.dots import WIDTH, choose_axis_steps
from hallulab.simulator.report.html import Tick, render_part

LEFT, RIGHT, BOTTOM, HEIGHT = 44.0, 24.0, 40.0, 200.0
"""Margins of the plot in the SVG's units, and the height of the plot itself."""
_APART = 7.0
"""Distance of the dots of two detectors at one chatbot."""
_LINE, _LETTER = 17.0, 7.4
"""Height of a line of names, and about the width of a letter."""
_LONGEST = 24


@dataclass(frozen=True)
class CostDot:
    """A chatbot under a detector."""

    x: float
    y: float
    low: float | None
    high: float | None
    detector: int
    """Place of the detector, which chooses the colour."""
    title: str
    """The same in words."""


@dataclass(frozen=True)
class CostName:
    """The name of a chatbot, above its dots."""

    text: str
    """It."""
    at: float
    """What it costs."""
    x: float
    """Its middle; names at the edges are moved inwards."""
    y: float
    """Its height."""


@dataclass(frozen=True)
class CostPlot:
    """The chart, ready to be drawn."""

    height: float
    """Its height in the SVG's units."""
    top: float
    """Where the plot begins, below the names."""
    floor: float
    """Where it ends."""
    x_ticks: tuple[Tick, ...]
    y_ticks: tuple[Tick, ...]
    names: tuple[CostName, ...]
    dots: tuple[CostDot, ...]


class CostChart(Chart):
    """Draws model calls a reply against HPT-1."""

    TITLE = "Cost against quality: model calls a reply, and HPT-1; left and low is better"
    ORDER = 30

    @classmethod
    def svg(cls, rows: Sequence[Row]) -> str:
        """Return a dot for each chatbot and detector; nothing where no calls are known."""
        plot = lay_out_costs(rows)
        if plot is None:
            return ""
        box = {"width": WIDTH, "left": LEFT, "right": RIGHT}
        return render_part("hallulab.simulator.report", "cost.html", title=cls.TITLE, plot=plot, box=box)


def lay_out_costs(rows: Sequence[Row]) -> CostPlot | None:
    """Lay out the chart; None: no chatbot has a number of calls and of hallucinations."""
    detectors = list(dict.fromkeys(row.detector for row in rows))
    shown = [(row, row.calls_per_reply, row.hpt_1) for row in rows]
    known = [(row, calls, hpt) for row, calls, hpt in shown if calls is not None and hpt is not None]
    if not any(calls for _, calls, _ in known):
        return None
    across = choose_axis_steps([calls for _, calls, _ in known], None)
    up = choose_axis_steps([end for row, _, hpt in known for end in (hpt, *(row.hpt_1_ci95 or ()))], None)

    def place_x(calls: float) -> float:
        return round(LEFT + calls / across[-1] * (WIDTH - LEFT - RIGHT), 2)

    names = _place_names({row.chatbot: place_x(calls) for row, calls, _ in known})
    top = max(name.y for name in names) + 8
    floor = top + HEIGHT

    def place_y(value: float) -> float:
        return round(floor - value / up[-1] * HEIGHT, 2)

    dots = []
    for row, calls, hpt in known:
        number, ci95 = detectors.index(row.detector), row.hpt_1_ci95
        ends = "" if ci95 is None else f", 95% interval {ci95[0]:.2f} to {ci95[1]:.2f}"
        dots.append(
            CostDot(
                x=round(place_x(calls) + (number - (len(detectors) - 1) / 2) * _APART, 2),
                y=place_y(hpt),
                low=None if ci95 is None else place_y(ci95[0]),
                high=None if ci95 is None else place_y(ci95[1]),
                detector=number,
                title=f"{row.chatbot}{mark(row)}, {row.detector}: {calls:.2f} calls a reply, {hpt:.2f}{ends}",
            )
        )
    return CostPlot(
        height=floor + BOTTOM,
        top=top,
        floor=floor,
        x_ticks=tuple(Tick(place_x(step), f"{step:g}") for step in across),
        y_ticks=tuple(Tick(place_y(step), f"{step:g}") for step in up),
        names=tuple(names),
        dots=tuple(dots),
    )


def _place_names(at: dict[str, float]) -> list[CostName]:
    """Place names above their dots, in as many lines as it takes for none to touch another."""
    ends: list[float] = []
    placed = []
    for name, x in sorted(at.items(), key=lambda item: item[1]):
        text = name if len(name) <= _LONGEST else f"{name[: _LONGEST - 1]}…"
        half = len(text) * _LETTER / 2
        middle = min(max(x, half), WIDTH - half)
        line = next((line for line, end in enumerate(ends) if end + _LETTER <= middle - half), len(ends))
        if line == len(ends):
            ends.append(0.0)
        ends[line] = middle + half
        placed.append(CostName(text, x, round(middle, 2), (line + 1) * _LINE))
    return placed
