"""Charts as SVG elements: dots by chatbot, lines by turn, and a difference that narrows.

Our own small SVG templates draw them, not a plotting library. They take colours and fonts from the page's
style sheet, so they follow light, dark and print. They need no inline styles, which the page's content
security policy forbids. Their text stays text.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from hallulab.simulator.show.html import Box, Tick, render_part
from hallulab.simulator.statistics.intervals import Interval

LEFT, RIGHT, TOP = 165.0, 24.0, 8.0
"""Margins of a chart of dots in the SVG's units: chatbot names left, half a tick label right."""
WIDTH = 560.0
"""Width of a chart of dots; the page scales it."""
_LINE = 15.0
_GAP = 13.0
_LEAST = 0.1
"""Smallest number at the end of an axis."""

DEPTH_BOX = Box(width=560.0, height=220.0, left=44.0, right=16.0, top=10.0, bottom=38.0)
APART = 7.0
"""Distance of the dots of two detectors that would stand at the same place."""

NARROWING_BOX = Box(width=440.0, height=230.0, left=52.0, right=16.0, top=10.0, bottom=36.0)
_MARGINS_SHOWN = 2.5
"""Half the height of a chart at least, in margins, so that these can be seen."""


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


def choose_steps_around_zero(values: Sequence[float]) -> tuple[float, ...]:
    """Choose round numbers around 0 that reach beyond all values on both sides.

    >>> choose_steps_around_zero([0.31, -0.1])
    (-0.4, -0.2, 0.0, 0.2, 0.4)
    """
    reach = max([_LEAST, *(abs(value) for value in values)])
    step = 10.0 ** math.floor(math.log10(reach))
    step *= next(factor for factor in (0.2, 0.5, 1, 2, 5, 10) if reach / (step * factor) <= 3)
    number = math.ceil(round(reach / step, 6))
    return tuple(round(at * step, 9) for at in range(-number, number + 1))


@dataclass(frozen=True)
class DotPoint:
    """A number of a chatbot under a detector."""

    chatbot: str
    detector: str
    value: float | None
    """None: undefined, and drawn as such."""
    ci95: Interval
    title: str
    """The same in words."""


@dataclass(frozen=True)
class Dot:
    """A dot with its interval, placed in the SVG's units."""

    x: float | None
    y: float
    low: float | None
    """One end of the interval, or None; likewise `high`."""
    high: float | None
    detector: int
    """Place of the detector, which chooses the colour."""
    title: str


@dataclass(frozen=True)
class DotGroup:
    """The dots of one chatbot."""

    label: str
    y: float
    """Height of the middle of the group."""
    dots: tuple[Dot, ...]


@dataclass(frozen=True)
class DotPlot:
    """A chart, ready to be drawn."""

    height: float
    floor: float
    ticks: tuple[Tick, ...]
    groups: tuple[DotGroup, ...]
    """Chatbots from top to bottom."""


def draw_dots(
    title: str,
    points: Sequence[DotPoint],
    steps: Sequence[float],
    label: Callable[[float], str],
    names: Sequence[str] = (),
) -> str:
    """Return a dot and its interval for each point as an SVG element.

    Args:
        points: the numbers, those of a chatbot in one group.
        steps: grid lines, from end to end of the axis.
        names: detectors in the order of their colours; empty: that of the points.
    """
    box = {"width": WIDTH, "left": LEFT, "top": TOP}
    plot = lay_out_dots(points, steps, label, names)
    return render_part(__package__, "dots.html", title=title, plot=plot, box=box)


def lay_out_dots(
    points: Sequence[DotPoint],
    steps: Sequence[float],
    label: Callable[[float], str],
    names: Sequence[str] = (),
) -> DotPlot:
    """Lay out what `draw_dots` draws."""
    chatbots = list(dict.fromkeys(point.chatbot for point in points))
    detectors = list(dict.fromkeys(point.detector for point in points))

    def place(value: float) -> float:
        share = (value - steps[0]) / (steps[-1] - steps[0])
        return round(LEFT + share * (WIDTH - LEFT - RIGHT), 2)

    pitch = _LINE * len(detectors) + _GAP
    groups = []
    for position, chatbot in enumerate(chatbots):
        top = TOP + position * pitch + _GAP / 2
        dots = [
            Dot(
                x=None if point.value is None else place(point.value),
                y=top + (detectors.index(point.detector) + 0.5) * _LINE,
                low=place(point.ci95[0]) if point.ci95 else None,
                high=place(point.ci95[1]) if point.ci95 else None,
                detector=(names or detectors).index(point.detector),
                title=point.title,
            )
            for point in points
            if point.chatbot == chatbot
        ]
        groups.append(DotGroup(chatbot, top + _LINE * len(detectors) / 2, tuple(dots)))
    floor = TOP + pitch * len(chatbots)
    ticks = tuple(Tick(place(step), label(step)) for step in steps)
    return DotPlot(floor + 24, floor, ticks, tuple(groups))


@dataclass(frozen=True)
class DepthPoint:
    """A number at one turn."""

    chatbot: str
    detector: int
    """Place of the detector, which chooses the colour."""
    turn: str
    value: float | None
    """None: it is undefined."""
    ci95: Interval

    @property
    def first_turn(self) -> int:
        """The first turn of a band such as `5 to 9`."""
        return int(self.turn.split()[0])


@dataclass(frozen=True)
class DepthLine:
    """The dots of a detector."""

    detector: int
    path: str
    """A line through them, in SVG's form."""
    dots: tuple[Dot, ...]


@dataclass(frozen=True)
class DepthPlot:
    """A chart, ready to be drawn."""

    label: str
    """The same in words, for those who cannot see it."""
    x_ticks: tuple[Tick, ...]
    y_ticks: tuple[Tick, ...]
    lines: tuple[DepthLine, ...]


def draw_depths(points: Sequence[DepthPoint], detectors: Sequence[str]) -> list[tuple[str, str]]:
    """Return each chatbot with its numbers by turn as an SVG element, a line a detector, all on one scale."""
    return [
        (chatbot, render_part(__package__, "depth.html", plot=plot, box=DEPTH_BOX))
        for chatbot, plot in lay_out_depths(points, detectors)
    ]


def lay_out_depths(points: Sequence[DepthPoint], detectors: Sequence[str]) -> list[tuple[str, DepthPlot]]:
    """Lay out what `draw_depths` draws."""
    box = DEPTH_BOX
    chatbots = list(dict.fromkeys(point.chatbot for point in points))
    points = sorted(points, key=lambda point: point.first_turn)
    turns = list(dict.fromkeys(point.turn for point in points))
    steps = choose_axis_steps(list_ends(points), None)

    def place_y(value: float) -> float:
        return round(box.height - box.bottom - value / steps[-1] * (box.height - box.top - box.bottom), 2)

    def place_x(turn: str, beside: float = 0.0) -> float:
        share = (turns.index(turn) + 0.5) / len(turns)
        return round(box.left + share * (box.width - box.left - box.right) + beside, 2)

    def place_dot(point: DepthPoint, value: float) -> Dot:
        return Dot(
            x=place_x(point.turn, (point.detector - (len(detectors) - 1) / 2) * APART),
            y=place_y(value),
            low=None if point.ci95 is None else place_y(point.ci95[0]),
            high=None if point.ci95 is None else place_y(point.ci95[1]),
            detector=point.detector,
            title=f"{point.chatbot}, turn {point.turn}, {detectors[point.detector]}: {value:.2f}"
            f"{describe_interval(point.ci95)}",
        )

    plots = []
    for chatbot in chatbots:
        lines = []
        for detector in range(len(detectors)):
            own = [one for one in points if (one.chatbot, one.detector) == (chatbot, detector)]
            dots = tuple(place_dot(one, one.value) for one in own if one.value is not None)
            lines.append(DepthLine(detector, " ".join(f"{dot.x:g},{dot.y:g}" for dot in dots), dots))
        plot = DepthPlot(
            label=f"HPT-1 by turn. {'; '.join(dot.title for line in lines for dot in line.dots)}",
            x_ticks=tuple(Tick(place_x(turn), turn) for turn in turns),
            y_ticks=tuple(Tick(place_y(step), f"{step:g}") for step in steps),
            lines=tuple(line for line in lines if line.dots),
        )
        plots.append((chatbot, plot))
    return plots


def list_ends(points: Iterable[DotPoint | DepthPoint]) -> list[float]:
    """Return the numbers that an axis must have: values and ends of intervals."""
    return [end for point in points for end in (point.value, *(point.ci95 or ())) if end is not None]


def describe_interval(ci95: Interval, scale: float = 1) -> str:
    """Return `, 95% interval 0.50 to 2.00`, for the title of a dot; empty without an interval."""
    return "" if ci95 is None else f", 95% interval {ci95[0] * scale:.2f} to {ci95[1] * scale:.2f}"


@dataclass(frozen=True)
class NarrowingPoint:
    """A difference after a batch of personas."""

    personas: int
    difference: float | None
    """None: nothing is known yet."""
    low: float
    """The true difference is between this and `high`."""
    high: float
    title: str
    """The same in words."""


@dataclass(frozen=True)
class NarrowingPlot:
    """A chart, ready to be drawn."""

    label: str
    """The same in words, for those who cannot see it."""
    x_ticks: tuple[Tick, ...]
    y_ticks: tuple[Tick, ...]
    band: str
    """Outline of the interval, in SVG's form."""
    middle: str
    zero: float
    margins: tuple[float, float]
    """Heights of the margin, above and below."""
    marks: tuple[tuple[float, float, str], ...]
    """Place and title of the difference after each batch."""


def draw_narrowing(title: str, points: Sequence[NarrowingPoint], margin: float) -> str:
    """Return how a difference narrowed in a run until it is decided, as an SVG element.

    Args:
        points: it after each batch.
        margin: difference below which two chatbots count as alike.
    """
    plot = lay_out_narrowing(title, points, margin)
    return render_part(__package__, "narrowing.html", plot=plot, box=NARROWING_BOX)


def lay_out_narrowing(title: str, points: Sequence[NarrowingPoint], margin: float) -> NarrowingPlot:
    """Lay out what `draw_narrowing` draws. First intervals lead beyond its height, and are cut there."""
    box, last = NARROWING_BOX, points[-1]
    values = [1.5 * abs(point.difference) for point in points if point.difference is not None]
    lines = choose_axis_steps([abs(last.low), abs(last.high), *values, _MARGINS_SHOWN * margin], None)
    top = lines[-1]

    def x(personas: float) -> float:
        return round(box.left + personas / last.personas * (box.width - box.left - box.right), 2)

    def y(value: float) -> float:
        share = (top - max(-top, min(top, value))) / (2 * top)
        return round(box.top + share * (box.height - box.top - box.bottom), 2)

    def join(places: Sequence[tuple[float, float]]) -> str:
        return " ".join(f"{x:g},{y:g}" for x, y in places)

    lower = [(x(point.personas), y(point.low)) for point in points]
    upper = [(x(point.personas), y(point.high)) for point in points]
    marks = [
        (x(point.personas), y(point.difference), point.title)
        for point in points
        if point.difference is not None
    ]
    return NarrowingPlot(
        label=f"{title}, after each batch. The last one: {last.title}",
        x_ticks=tuple(
            Tick(x(at), f"{at:g}") for at in choose_axis_steps([last.personas], None) if at <= last.personas
        ),
        y_ticks=tuple(
            Tick(y(value), f"{value:g}") for line in lines for value in dict.fromkeys((line, -line))
        ),
        band=join(upper + lower[::-1]),
        middle=join([mark[:2] for mark in marks]),
        zero=y(0),
        margins=(y(margin), y(-margin)),
        marks=tuple(marks),
    )
