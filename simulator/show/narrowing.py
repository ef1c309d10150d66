"""Charts of how the differences of every two chatbots narrowed in a run until it is decided."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from hallulab.scenarios.text.wording import format_count
from hallulab.simulator.decide.decision import BatchStep, PairState
from hallulab.simulator.show.dots import choose_axis_steps
from hallulab.simulator.show.html import Box, Tick, render_part

BOX = Box(width=440.0, height=230.0, left=52.0, right=16.0, top=10.0, bottom=36.0)
"""Size of a chart, and the margins of its plot."""
_MARGINS_SHOWN = 2.5
"""Half the height of a chart at least, in margins, so that these can be seen."""


@dataclass(frozen=True)
class Mark:
    """The difference after a batch."""

    x: float
    y: float
    title: str
    """The same in words, with the interval."""


@dataclass(frozen=True)
class NarrowingPlot:
    """A chart, ready to be drawn."""

    label: str
    """What it shows, for those who cannot see it."""
    x_ticks: tuple[Tick, ...]
    y_ticks: tuple[Tick, ...]
    band: str
    """Outline of the interval, in SVG's form."""
    middle: str
    zero: float
    margins: tuple[float, float]
    """Heights of the margin, above and below."""
    marks: tuple[Mark, ...]


def draw_narrowing(a: str, b: str, steps: Sequence[BatchStep], margin: float) -> str:
    """Return how the difference of two chatbots narrowed, as an SVG element."""
    plot = lay_out_narrowing(a, b, steps, margin)
    return render_part(__package__, "narrowing.html", plot=plot, box=BOX)


def lay_out_narrowing(a: str, b: str, steps: Sequence[BatchStep], margin: float) -> NarrowingPlot:
    """Lay out such a chart. What leads beyond its height, as first intervals do, is cut there."""
    found = [(step.persons, pair) for step in steps for pair in step.pairs if (pair.a, pair.b) == (a, b)]
    most = found[-1][0]
    ends = [abs(end) for _, pair in found[-1:] for end in (pair.low, pair.high)]
    values = [1.5 * abs(pair.difference) for _, pair in found if pair.difference is not None]
    lines = choose_axis_steps([*ends, *values, _MARGINS_SHOWN * margin], None)
    top = lines[-1]

    def x(personas: float) -> float:
        return round(BOX.left + personas / most * (BOX.width - BOX.left - BOX.right), 2)

    def y(value: float) -> float:
        share = (top - max(-top, min(top, value))) / (2 * top)
        return round(BOX.top + share * (BOX.height - BOX.top - BOX.bottom), 2)

    lower = [(x(personas), y(pair.low)) for personas, pair in found]
    upper = [(x(personas), y(pair.high)) for personas, pair in found]
    marks = [
        Mark(x(personas), y(pair.difference), describe_pair(pair))
        for personas, pair in found
        if pair.difference is not None
    ]
    return NarrowingPlot(
        label=f"{a} − {b}, after each batch. The last one: {describe_pair(found[-1][1])}",
        x_ticks=tuple(Tick(x(at), f"{at:g}") for at in choose_axis_steps([most], None) if at <= most),
        y_ticks=tuple(
            Tick(y(value), f"{value:g}") for line in lines for value in dict.fromkeys((line, -line))
        ),
        band=_format(upper + lower[::-1]),
        middle=_format([(mark.x, mark.y) for mark in marks]),
        zero=y(0),
        margins=(y(margin), y(-margin)),
        marks=tuple(marks),
    )


def describe_pair(pair: PairState) -> str:
    """Say what is known of a pair, and on how many personas."""
    have = format_count(pair.persons, "persona")
    if pair.difference is None:
        return f"{have}, nothing is known"
    return f"{have}: {pair.difference:.2f} a turn, between {pair.low:.2f} and {pair.high:.2f}"


def _format(points: Sequence[tuple[float, float]]) -> str:
    return " ".join(f"{x:g},{y:g}" for x, y in points)
