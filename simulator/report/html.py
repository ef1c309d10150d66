"""What every page shares: templates that escape everything, style, security policy, charts.

Geometry of the page's charts: a dot and its interval for each chatbot and detector.
Our own small SVG template draws the charts, not a plotting library. They take colours and fonts from the
page's style sheet, so they follow light, dark and print. They need no inline styles, which the page's content
security policy forbids. Their text stays text.
"""

from __future__ import annotations

import base64
import hashlib
import json
import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import TYPE_CHECKING, Any, Literal

from hallulab.scenarios.text.wording import NOTHING, choose_noun, format_number
from hallulab.simulator.measure.hallucinations import Row
from hallulab.simulator.report.columns import mark

if TYPE_CHECKING:
    from jinja2 import Template


def render(package: str, template: str, style: str, script: str | None = None, /, **values: Any) -> str:
    """Render a page from a template of a package that extends `frame.html`.

    A name without a value is an error. The page's security policy allows this style sheet and this script
    only, by hash.
    """
    return _load_template(package, template).render(
        values,
        style=style,
        style_hash=_hash_for_policy(style),
        script=script,
        script_hash=None if script is None else _hash_for_policy(script),
    )


_SHARED = ("frame.html", "table.html", "plot.html", "reader.html", "embedded.html")
"""Templates that others are made of."""


@cache
def _load_template(package: str, name: str) -> Template:
    from jinja2 import DictLoader, Environment, StrictUndefined

    shared = {shared: load_asset(__package__, shared) for shared in _SHARED}
    environment = Environment(
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        loader=DictLoader({**shared, name: load_asset(package, name)}),
    )
    environment.globals.update(number=format_number, nothing=NOTHING, noun=choose_noun)
    return environment.get_template(name)


def load_asset(package: str, name: str) -> str:
    """Read a text file of a package."""
    return files(package).joinpath(name).read_text(encoding="utf-8")


def _hash_for_policy(text: str) -> str:
    """Return the SHA-256 of a script or style sheet, as a content security policy names it."""
    return base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()


def escape_json(value: Any) -> Any:
    """Return JSON that cannot end its script element, marked as safe for the template."""
    from markupsafe import Markup

    text = json.dumps(value, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
    for character in "<>&\u2028\u2029":
        text = text.replace(character, f"\\u{ord(character):04x}")
    return Markup(text)  # noqa: S704 - every character that HTML could read as markup is escaped above


LEFT, RIGHT, TOP = 165.0, 24.0, 8.0
"""Margins of the plot in the SVG's units: chatbot names left, half a tick label right."""
WIDTH = 560.0
"""Width of a chart; the page scales it."""
_LINE = 15.0
_GAP = 13.0
_LEAST = 0.1


@dataclass(frozen=True)
class Tick:
    """A grid line."""

    at: float
    """Its place, horizontal or vertical."""
    label: str
    """The text at its end."""


@dataclass(frozen=True)
class Dot:
    """One number with its interval."""

    y: float
    """Height of its line."""
    x: float | None
    """The number; None when it is undefined."""
    low: float | None
    """Left end of the interval, or None."""
    high: float | None
    """Right end of the interval, or None."""
    detector: int
    """Position of the detector, which chooses the colour."""
    title: str
    """The same in words."""


@dataclass(frozen=True)
class ChatbotDots:
    """The dots of one chatbot."""

    label: str
    """Its name."""
    y: float
    """Height of the middle of the group."""
    dots: tuple[Dot, ...]
    """One dot a detector."""


@dataclass(frozen=True)
class Chart:
    """A chart, ready to be drawn."""

    title: str
    """What is shown, and which end is good."""
    height: float
    """Height in the SVG's units."""
    floor: float
    """Height of the axis."""
    ticks: tuple[Tick, ...]
    """Grid lines."""
    groups: tuple[ChatbotDots, ...]
    """Chatbots from top to bottom."""


def build_chart(
    report_rows: Sequence[Row],
    field: Literal["hpt_1", "tokacc_1"],
    title: str,
    scale: float,
    unit: str,
    upper: float | None,
) -> Chart:
    """Lay out one metric; `upper` is its largest possible value, or None."""
    chatbots = list(dict.fromkeys(row.chatbot for row in report_rows))
    detectors = list(dict.fromkeys(row.detector for row in report_rows))
    values = [
        value * scale
        for row in report_rows
        for value in (getattr(row, field), *(getattr(row, f"{field}_ci95") or ()))
        if value is not None
    ]
    steps = choose_axis_steps(values, upper)
    first, last = steps[0], steps[-1]

    def place(value: float) -> float:
        return round(LEFT + (value - first) / (last - first) * (WIDTH - LEFT - RIGHT), 2)

    pitch = _LINE * len(detectors) + _GAP
    groups = []
    for position, chatbot in enumerate(chatbots):
        top = TOP + position * pitch + _GAP / 2
        dots = []
        for row in (item for item in report_rows if item.chatbot == chatbot):
            value, ci95 = getattr(row, field), getattr(row, f"{field}_ci95")
            number = detectors.index(row.detector)
            words = "not scored" if value is None else f"{value * scale:.2f}{unit}"
            if value is not None and row.no_interval:
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
    return Chart(title, floor + 24, floor, ticks, tuple(groups))


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
