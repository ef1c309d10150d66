"""Charts of a dot and its interval for each chatbot and detector."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar, Literal

from hallulab.simulator.metrics.hallucinations import Row
from hallulab.simulator.metrics.self_judging import mark
from hallulab.simulator.show.chart import Chart
from hallulab.simulator.show.html import Tick, render_part

LEFT, RIGHT, TOP = 165.0, 24.0, 8.0
"""Margins of the plot in the SVG's units: chatbot names left, half a tick label right."""
WIDTH = 560.0
"""Width of a chart; the page scales it."""
_LINE = 15.0
_GAP = 13.0
_LEAST = 0.1


@dataclass(frozen=True)
class Dot:
    """One number with its interval."""

    y: float
    x: float | None
    """The number; None when it is undefined."""
    low: float | None
    """Left end of the interval, or None."""
    high: float | None
    """Right end of the interval, or None."""
    detector: int
    """Position of the detector, which chooses the colour."""
    title: str


@dataclass(frozen=True)
class ChatbotDots:
    """The dots of one chatbot."""

    label: str
    y: float
    """Height of the middle of the group."""
    dots: tuple[Dot, ...]


@dataclass(frozen=True)
class DotPlot:
    """A chart, ready to be drawn."""

    height: float
    """Height in the SVG's units."""
    floor: float
    ticks: tuple[Tick, ...]
    groups: tuple[ChatbotDots, ...]
    """Chatbots from top to bottom."""


class DotChart(Chart):
    """Draws one number of the rows."""

    FIELD: ClassVar[Literal["hpt_1", "tokacc_1"]]
    """The number's field; its interval is in `FIELD_ci95`."""
    SCALE: ClassVar[float] = 1
    UNIT: ClassVar[str] = ""
    UPPER: ClassVar[float | None] = None
    """Its largest possible value, or None."""

    @classmethod
    def svg(cls, rows: Sequence[Row]) -> str:
        """Return the dots as an SVG element."""
        box = {"width": WIDTH, "left": LEFT, "top": TOP}
        return render_part(__package__, "dots.html", title=cls.TITLE, plot=cls.layout(rows), box=box)

    @classmethod
    def layout(cls, rows: Sequence[Row]) -> DotPlot:
        """Lay out the dots."""
        field, scale, unit = cls.FIELD, cls.SCALE, cls.UNIT
        chatbots = list(dict.fromkeys(row.chatbot for row in rows))
        detectors = list(dict.fromkeys(row.detector for row in rows))
        values = [
            value * scale
            for row in rows
            for value in (getattr(row, field), *(getattr(row, f"{field}_ci95") or ()))
            if value is not None
        ]
        steps = choose_axis_steps(values, cls.UPPER)
        first, last = steps[0], steps[-1]

        def place(value: float) -> float:
            return round(LEFT + (value - first) / (last - first) * (WIDTH - LEFT - RIGHT), 2)

        pitch = _LINE * len(detectors) + _GAP
        groups = []
        for position, chatbot in enumerate(chatbots):
            top = TOP + position * pitch + _GAP / 2
            dots = []
            for row in (item for item in rows if item.chatbot == chatbot):
                value, ci95 = getattr(row, field), getattr(row, f"{field}_ci95")
                number = detectors.index(row.detector)
                words = "not scored" if value is None else f"{value * scale:.2f}{unit}"
                if value is not None and not ci95 and row.no_interval:
                    words += f" ({row.no_interval})"
                if ci95:
                    words += f", 95% interval {ci95[0] * scale:.2f} to {ci95[1] * scale:.2f}"
                dots.append(
                    Dot(
                        y=top + (number + 0.5) * _LINE,
                        x=None if value is None else place(value * scale),
                        low=place(ci95[0] * scale) if ci95 else None,
                        high=place(ci95[1] * scale) if ci95 else None,
                        detector=number,
                        title=f"{chatbot}{mark(row)}, {row.detector}: {words}",
                    )
                )
            groups.append(ChatbotDots(chatbot, top + _LINE * len(detectors) / 2, tuple(dots)))
        floor = TOP + pitch * len(chatbots)
        ticks = tuple(Tick(place(step), f"{step:g}{unit}") for step in steps)
        return DotPlot(floor + 24, floor, ticks, tuple(groups))


def choose_axis_steps(values: Sequence[float], upper: float | None) -> tuple[float, ...]:
    """Choose round numbers around `values`: from 0 up, or, if there is an `upper`, from there down."""
    if not values:
        return (0.0, 1.0) if upper is None else (0.0, upper)
    least = _LEAST if upper is None else upper * _LEAST
    high = max(least, *values) if upper is None else upper
    low = 0.0 if upper is None else min(upper - least, *values)
    room = high - low
    step = 10.0 ** math.floor(math.log10(room / 3))
    step *= next(factor for factor in (1, 2, 5, 10) if room / (step * factor) <= 5)
    first = math.floor(round(low / step, 6))
    last = math.ceil(round(high / step, 6))
    return tuple(round(number * step, 9) for number in range(first, last + 1))
