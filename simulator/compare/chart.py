"""A chart of the differences between two runs: a dot and its interval for each chatbot and detector."""

from __future__ import annotations

import math
from collections.abc import Sequence

from hallulab.simulator.compare.differences import DifferenceLine
from hallulab.simulator.compare.sentences import render_line
from hallulab.simulator.show.dots import LEFT, RIGHT, TOP, WIDTH, ChatbotDots, Dot, DotPlot
from hallulab.simulator.show.html import Tick, render_part

TITLE = "Δ HPT-1, after minus before: left of 0 is better"
_LINE = 15.0
_GAP = 13.0
_LEAST = 0.1
"""Smallest difference at the ends of the axis."""


def draw_differences(lines: Sequence[DifferenceLine]) -> str:
    """Return the differences of HPT-1 as an SVG element."""
    box = {"width": WIDTH, "left": LEFT, "top": TOP}
    plot = lay_out_differences([line for line in lines if line.metric == "hpt_1"])
    return render_part("hallulab.simulator.show", "dots.html", title=TITLE, plot=plot, box=box)


def lay_out_differences(lines: Sequence[DifferenceLine]) -> DotPlot:
    """Lay out a dot for each line, 0 in the middle."""
    chatbots = list(dict.fromkeys(line.chatbot for line in lines))
    detectors = list(dict.fromkeys(line.detector for line in lines))
    values = [value for line in lines for value in (line.difference, *(line.ci95 or ())) if value is not None]
    steps = choose_steps(values)
    first, last = steps[0], steps[-1]

    def place(value: float) -> float:
        return round(LEFT + (value - first) / (last - first) * (WIDTH - LEFT - RIGHT), 2)

    pitch = _LINE * len(detectors) + _GAP
    groups = []
    for position, chatbot in enumerate(chatbots):
        top = TOP + position * pitch + _GAP / 2
        dots = [
            Dot(
                y=top + (detectors.index(line.detector) + 0.5) * _LINE,
                x=None if line.difference is None else place(line.difference),
                low=place(line.ci95[0]) if line.ci95 else None,
                high=place(line.ci95[1]) if line.ci95 else None,
                detector=detectors.index(line.detector),
                title=f"{chatbot}, {line.detector}: {render_line(line)}",
            )
            for line in lines
            if line.chatbot == chatbot
        ]
        groups.append(ChatbotDots(chatbot, top + _LINE * len(detectors) / 2, tuple(dots)))
    floor = TOP + pitch * len(chatbots)
    ticks = tuple(Tick(place(step), f"{step:+g}" if step else "0") for step in steps)
    return DotPlot(floor + 24, floor, ticks, tuple(groups))


def choose_steps(values: Sequence[float]) -> tuple[float, ...]:
    """Choose round numbers around 0 that reach beyond all values on both sides.

    >>> choose_steps([0.31, -0.1])
    (-0.4, -0.2, 0.0, 0.2, 0.4)
    """
    reach = max([_LEAST, *(abs(value) for value in values)])
    step = 10.0 ** math.floor(math.log10(reach))
    step *= next(factor for factor in (0.2, 0.5, 1, 2, 5, 10) if reach / (step * factor) <= 3)
    number = math.ceil(round(reach / step, 6))
    return tuple(round(at * step, 9) for at in range(-number, number + 1))
