"""Geometry of the benchmark page's charts: precision-recall, reliability, cost against quality.

Our own SVG template draws them; `hallulab.simulator.report.html` gives the reasons.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from hallulab.simulator.bench.rows import LevelRow
from hallulab.simulator.measure.detection import Sample, compute_curve
from hallulab.simulator.measure.spending import find_pareto_front
from hallulab.simulator.report.html import Tick

WIDTH, HEIGHT = 440.0, 320.0
"""Size of a chart in the SVG's units; the page scales it."""
LEFT, RIGHT, TOP, BOTTOM = 52.0, 16.0, 10.0, 46.0
"""Margins of the plot."""
POINTS = 200
"""Largest number of points of a curve."""
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
    """What it shows, in words."""


@dataclass(frozen=True)
class CurvePoint:
    """A single point."""

    x: float
    y: float
    detector: int
    """Position of the detector, which chooses the colour."""
    title: str
    """The same in words."""
    optimal: bool = False
    """Whether it is on the Pareto front."""


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


def plot_precision_recall(level: str, samples: Mapping[str, Sample], detectors: Sequence[str]) -> Plot:
    """Plot precision over recall for falling thresholds. A mark shows the detector's own decision."""
    lines, marks = [], []
    for name, sample in samples.items():
        positive = int(sample.labels.sum())
        if not positive:
            continue
        found = compute_curve(sample)
        chosen = _choose_positions(len(found.hits))
        points = zip((found.hits / positive)[chosen], (found.hits / found.flagged)[chosen], strict=True)
        number = detectors.index(name)
        lines.append(CurveLine(_format_path([(float(r), float(p)) for r, p in points]), number, name))
        flagged = int(sample.flags.sum())
        if flagged:
            hits = int((sample.labels & sample.flags).sum())
            r, p = hits / positive, hits / flagged
            title = f"{name}, as it decides: recall {r:.2f}, precision {p:.2f}"
            marks.append(CurvePoint(_scale_x(r), _scale_y(p), number, title))
    title = f"Precision and recall, {level} level"
    return _build_unit_plot(title, "Recall", "Precision", lines, marks)


def plot_reliability(level: str, rows: Sequence[LevelRow], detectors: Sequence[str]) -> Plot:
    """Plot the share of positives over the mean score, by bins. The diagonal is perfect calibration."""
    lines = [CurveLine(_format_path([(0.0, 0.0), (1.0, 1.0)]), None, "perfect calibration")]
    marks = []
    for row in rows:
        if row.detector not in detectors or not row.reliability:
            continue
        number = detectors.index(row.detector)
        points = [(score, positive) for _, score, positive in row.reliability]
        lines.append(CurveLine(_format_path(points), number, row.detector))
        for n, score, positive in row.reliability:
            title = f"{row.detector}: {positive:.0%} of {n} with mean score {score:.2f}"
            marks.append(CurvePoint(_scale_x(score), _scale_y(positive), number, title))
    title = f"Reliability, {level} level"
    return _build_unit_plot(title, "Mean score", "Share hallucinated", lines, marks)


def plot_degradation(
    title: str,
    x_label: str,
    y_label: str,
    levels: Sequence[float],
    series: Mapping[str, Sequence[float | None]],
) -> Plot:
    """Plot values in [0, 1] over the levels of an attack, a line for each name in order.

    Args:
        levels: from low to high.
        series: name → its value at each level; None: there is none.
    """
    first, last = levels[0], levels[-1] if levels[-1] > levels[0] else levels[0] + 1
    lines, marks = [], []
    for number, (name, values) in enumerate(series.items()):
        points = [
            ((level - first) / (last - first), value, level)
            for level, value in zip(levels, values, strict=True)
            if value is not None
        ]
        lines.append(CurveLine(_format_path([(x, y) for x, y, _ in points]), number, name))
        marks += [
            CurvePoint(_scale_x(x), _scale_y(y), number, f"{name}, {x_label.lower()} {level:g}: {y:.3f}")
            for x, y, level in points
        ]
    ticks = tuple(Tick(_scale_x((level - first) / (last - first)), f"{level:g}") for level in levels)
    return Plot(title, x_label, y_label, ticks, _build_y_ticks(), tuple(lines), tuple(marks))


class Priced(NamedTuple):
    """Numbers that detectors, or configurations, are compared by."""

    name: str
    quality: float | None
    cost: float | None
    coverage: float | None


def plot_frontier(
    rows: Sequence[Priced], cost_label: str, detectors: Sequence[str], quality: str = "AUROC"
) -> Plot | None:
    """Plot a quality of replies over the cost of a reply, on a logarithmic axis; None where no cost is known.

    Detectors without cost stand left of the axis, at 0. A detector is beaten by one that is as good, as
    cheap, and scored as many replies.
    """
    shown = [
        (row, row.quality, row.cost)
        for row in rows
        if row.name in detectors and row.quality is not None and row.cost is not None
    ]
    logs = [math.log10(cost) for _, _, cost in shown if cost]
    if not logs:
        return None
    optimal = find_pareto_front([(value, -cost, row.coverage) for row, value, cost in shown])
    first, last = math.floor(min(logs)), math.ceil(max(logs))
    last += first == last
    places = {10.0**power: power for power in range(first, last + 1)}
    if len(logs) < len(shown):
        first -= 1
        places = {0.0: first, **places}
    marks = [
        CurvePoint(
            _scale_x(((math.log10(cost) if cost else first) - first) / (last - first)),
            _scale_y(value),
            detectors.index(row.name),
            f"{row.name}: {quality} {value:.3f}, {cost_label} {cost:.4g}"
            + ("" if row.coverage == 1 else f", coverage {row.coverage or 0:.1%}"),
            best,
        )
        for (row, value, cost), best in zip(shown, optimal, strict=True)
    ]
    front = _filter_rising(sorted((mark.x, mark.y) for mark in marks if mark.optimal))
    ticks = tuple(
        Tick(_scale_x((place - first) / (last - first)), f"{value:g}") for value, place in places.items()
    )
    path = " ".join(f"{x:g},{y:g}" for x, y in front)
    lines = (CurveLine(path, None, "Pareto front"),)
    title = f"Quality and cost: {quality} of replies over {cost_label}"
    return Plot(title, cost_label, quality, ticks, _build_y_ticks(), lines, tuple(marks))


def _filter_rising(points: Sequence[tuple[float, float]]) -> list[tuple[float, float]]:
    """Return the points, from left to right, that lie above all before them (y grows downwards)."""
    return [point for place, point in enumerate(points) if all(point[1] < y for _, y in points[:place])]


def _build_unit_plot(
    title: str, x_label: str, y_label: str, lines: Sequence[CurveLine], marks: Sequence[CurvePoint]
) -> Plot:
    ticks = tuple(Tick(_scale_x(value), f"{value:g}") for value in _UNIT)
    return Plot(title, x_label, y_label, ticks, _build_y_ticks(), tuple(lines), tuple(marks))


def _build_y_ticks() -> tuple[Tick, ...]:
    return tuple(Tick(_scale_y(value), f"{value:g}") for value in _UNIT)


def _choose_positions(n: int) -> list[int]:
    """Choose at most `POINTS` positions in a curve of n points, its ends among them."""
    return sorted({round(place) for place in np.linspace(0, n - 1, min(n, POINTS))})


def _format_path(points: Sequence[Point]) -> str:
    return " ".join(f"{_scale_x(x):g},{_scale_y(y):g}" for x, y in points)


def _scale_x(value: float) -> float:
    return round(LEFT + value * (WIDTH - LEFT - RIGHT), 2)


def _scale_y(value: float) -> float:
    return round(HEIGHT - BOTTOM - value * (HEIGHT - TOP - BOTTOM), 2)
