"""The charts of the benchmark's page: precision-recall, reliability, cost against quality."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np

from hallulab.simulator.bench.rows import LevelRow
from hallulab.simulator.bench.sweep import SweepRow
from hallulab.simulator.metrics.spending import find_pareto_front
from hallulab.simulator.show.plot import (
    CurveLine,
    CurvePoint,
    Plot,
    build_plot,
    format_path,
    scale_x,
    scale_y,
)
from hallulab.simulator.statistics.detection import Sample, compute_curve

POINTS = 200
"""Largest number of points of a curve."""


def plot_precision_recall(level: str, samples: Mapping[str, Sample], detectors: Sequence[str]) -> Plot:
    """Plot precision over recall for falling thresholds. A mark shows the detector's own decision."""
    lines, marks = [], []
    for name, sample in samples.items():
        positive = int(sample.labels.sum())
        if not positive:
            continue
        found = compute_curve(sample)
        # At most `POINTS` of the curve's points, its ends among them.
        ends = np.linspace(0, len(found.hits) - 1, min(len(found.hits), POINTS))
        chosen = sorted({round(place) for place in ends})
        points = zip((found.hits / positive)[chosen], (found.hits / found.flagged)[chosen], strict=True)
        number = detectors.index(name)
        lines.append(CurveLine(format_path([(float(r), float(p)) for r, p in points]), number, name))
        flagged = int(sample.flags.sum())
        if flagged:
            hits = int((sample.labels & sample.flags).sum())
            r, p = hits / positive, hits / flagged
            title = f"{name}, as it decides: recall {r:.2f}, precision {p:.2f}"
            marks.append(CurvePoint(scale_x(r), scale_y(p), number, title))
    title = f"Precision and recall, {level} level"
    return build_plot(title, "Recall", "Precision", lines, marks)


def plot_reliability(level: str, rows: Sequence[LevelRow], detectors: Sequence[str]) -> Plot:
    """Plot the share of positives over the mean score, by bins. The diagonal is perfect calibration."""
    lines = [CurveLine(format_path([(0.0, 0.0), (1.0, 1.0)]), None, "perfect calibration")]
    marks = []
    for row in rows:
        if row.detector not in detectors or not row.reliability:
            continue
        number = detectors.index(row.detector)
        points = [(score, positive) for _, score, positive in row.reliability]
        lines.append(CurveLine(format_path(points), number, row.detector))
        for n, score, positive in row.reliability:
            title = f"{row.detector}: {positive:.0%} of {n} with mean score {score:.2f}"
            marks.append(CurvePoint(scale_x(score), scale_y(positive), number, title))
    title = f"Reliability, {level} level"
    return build_plot(title, "Mean score", "Share hallucinated", lines, marks)


_COSTS = {"p50_ms": "milliseconds a reply (p50)", "tokens_per_reply": "tokens a reply"}


def plot_frontiers(
    rows: Mapping[str, LevelRow | SweepRow], detectors: Sequence[str], quality: str, costs: Sequence[str]
) -> list[Plot]:
    """Plot a chart for each cost, which is a field of the rows, that any row has."""
    found = []
    for cost in costs:
        priced = [
            Priced(name, getattr(row, quality), getattr(row, cost), row.coverage)
            for name, row in rows.items()
        ]
        plot = plot_frontier(priced, _COSTS[cost], detectors, quality.upper())
        if plot is not None:
            found.append(plot)
    return found


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
    last += first == last  # an axis needs a length, also where all costs have one power of ten
    places = {10.0**power: power for power in range(first, last + 1)}
    if len(logs) < len(shown):
        first -= 1
        places = {0.0: first, **places}
    marks = [
        CurvePoint(
            scale_x(((math.log10(cost) if cost else first) - first) / (last - first)),
            scale_y(value),
            detectors.index(row.name),
            f"{row.name}: {quality} {value:.3f}, {cost_label} {cost:.4g}"
            + ("" if row.coverage == 1 else f", coverage {row.coverage or 0:.1%}"),
            is_best,
        )
        for (row, value, cost), is_best in zip(shown, optimal, strict=True)
    ]
    best = sorted((mark.x, mark.y) for mark in marks if mark.optimal)
    # From left to right those above all before them; y grows downwards.
    front = [point for place, point in enumerate(best) if all(point[1] < y for _, y in best[:place])]
    path = " ".join(f"{x:g},{y:g}" for x, y in front)
    title = f"Quality and cost: {quality} of replies over {cost_label}"
    ticks = [((place - first) / (last - first), value) for value, place in places.items()]
    return build_plot(title, cost_label, quality, [CurveLine(path, None, "Pareto front")], marks, ticks)


def plot_configurations(rows: Sequence[SweepRow], detectors: Sequence[str]) -> Plot:
    """Plot each configuration's precision over its recall; those that no other beats are joined."""
    shown = [
        (row, row.recall, row.precision)
        for row in rows
        if row.name in detectors and row.recall is not None and row.precision is not None
    ]
    marks = [
        CurvePoint(
            scale_x(recall),
            scale_y(precision),
            detectors.index(row.name),
            f"{row.name}: recall {recall:.2f}, precision {precision:.2f}",
            "precision_recall" in row.pareto,
        )
        for row, recall, precision in shown
    ]
    front = " ".join(f"{x:g},{y:g}" for x, y in sorted((mark.x, mark.y) for mark in marks if mark.optimal))
    lines = [CurveLine(front, None, "Pareto front")]
    return build_plot("Precision and recall of the configurations", "Recall", "Precision", lines, marks)
