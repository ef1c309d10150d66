"""The chart of cost against quality."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, NamedTuple

from hallulab.simulator.metrics.hallucinations import Row
from hallulab.simulator.metrics.self_judging import mark
from hallulab.simulator.show.chart import Chart
from hallulab.simulator.show.dots import WIDTH, choose_axis_steps
from hallulab.simulator.show.html import Tick, render_part

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


@dataclass(frozen=True)
class CostName:
    """The name of a chatbot, above its dots."""

    text: str
    at: float
    x: float
    """Its middle; names at the edges are moved inwards."""
    y: float


@dataclass(frozen=True)
class CostPlot:
    """The chart, ready to be drawn."""

    height: float
    """Its height in the SVG's units."""
    top: float
    """Where the plot begins, below the names."""
    floor: float
    across: str
    """What the axis below counts."""
    x_ticks: tuple[Tick, ...]
    y_ticks: tuple[Tick, ...]
    names: tuple[CostName, ...]
    dots: tuple[CostDot, ...]


class CostMeasure(NamedTuple):
    """What the axis of costs counts."""

    field: Literal["tokens_per_reply", "calls_per_reply"]
    label: str
    """What stands below the axis."""
    digits: int
    """Decimals of a number of it."""


_TOKENS = CostMeasure("tokens_per_reply", "tokens a reply", 0)
_CALLS = CostMeasure("calls_per_reply", "model calls a reply", 2)


class CostChart(Chart):
    """Draws tokens a reply against HPT-1; where servers did not tell them, model calls."""

    TITLE = "Cost against quality"
    ORDER = 30

    @classmethod
    def caption(cls, rows: Sequence[Row]) -> str:
        """Return the title with what costs are counted in, and why it is not tokens."""
        measure = choose_cost_measure(rows)
        title = f"{cls.TITLE}: {measure.label}, and HPT-1; left and low is better"
        silent = dict.fromkeys(
            row.chatbot for row in rows if row.hpt_1 is not None and row.tokens_per_reply is None
        )
        if measure is _TOKENS or not silent:
            return title
        return f"{title}. The server did not tell all tokens of {', '.join(silent)}."

    @classmethod
    def svg(cls, rows: Sequence[Row]) -> str:
        """Return a dot for each chatbot and detector; nothing where no costs are known."""
        plot = lay_out_costs(rows)
        if plot is None:
            return ""
        title, box = cls.caption(rows), {"width": WIDTH, "left": LEFT, "right": RIGHT}
        return render_part("hallulab.simulator.report", "cost.html", title=title, plot=plot, box=box)


def choose_cost_measure(rows: Sequence[Row]) -> CostMeasure:
    """Return tokens if they are known of all chatbots with a number of hallucinations, else calls."""
    costs = [row.tokens_per_reply for row in rows if row.hpt_1 is not None]
    return _TOKENS if any(costs) and None not in costs else _CALLS


def lay_out_costs(rows: Sequence[Row]) -> CostPlot | None:
    """Lay out the chart; None: no chatbot has a cost and a number of hallucinations."""
    measure = choose_cost_measure(rows)
    detectors = list(dict.fromkeys(row.detector for row in rows))
    shown = [(row, getattr(row, measure.field), row.hpt_1) for row in rows]
    known = [(row, cost, hpt) for row, cost, hpt in shown if cost is not None and hpt is not None]
    if not any(cost for _, cost, _ in known):
        return None
    across = choose_axis_steps([cost for _, cost, _ in known], None)
    up = choose_axis_steps([end for row, _, hpt in known for end in (hpt, *(row.hpt_1_ci95 or ()))], None)

    def place_x(cost: float) -> float:
        return round(LEFT + cost / across[-1] * (WIDTH - LEFT - RIGHT), 2)

    names = _place_names({row.chatbot: place_x(cost) for row, cost, _ in known})
    top = max(name.y for name in names) + 8
    floor = top + HEIGHT

    def place_y(value: float) -> float:
        return round(floor - value / up[-1] * HEIGHT, 2)

    dots = []
    for row, cost, hpt in known:
        number, ci95 = detectors.index(row.detector), row.hpt_1_ci95
        ends = "" if ci95 is None else f", 95% interval {ci95[0]:.2f} to {ci95[1]:.2f}"
        dots.append(
            CostDot(
                x=round(place_x(cost) + (number - (len(detectors) - 1) / 2) * _APART, 2),
                y=place_y(hpt),
                low=None if ci95 is None else place_y(ci95[0]),
                high=None if ci95 is None else place_y(ci95[1]),
                detector=number,
                title=(
                    f"{row.chatbot}{mark(row)}, {row.detector}: {cost:,.{measure.digits}f} {measure.label}, "
                    f"{hpt:.2f}{ends}"
                ),
            )
        )
    return CostPlot(
        height=floor + BOTTOM,
        top=top,
        floor=floor,
        across=measure.label,
        x_ticks=tuple(Tick(place_x(step), f"{step:,.10g}") for step in across),
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
