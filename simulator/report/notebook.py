"""A run in a notebook: its results in a cell, and a chart by matplotlib."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from hallulab.scenarios.errors import UsageError
from hallulab.scenarios.extras import require_extra
from hallulab.scenarios.near_names import suggest_name
from hallulab.simulator.metrics.hallucinations import Row
from hallulab.simulator.metrics.results import COLUMNS
from hallulab.simulator.metrics.run_report import RunReport
from hallulab.simulator.report.build import describe_omissions, render_headlines
from hallulab.simulator.show.columns import group_rows
from hallulab.simulator.show.html import render_part

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.lines import Line2D

_FIELDS = ("chatbot", "detector", "hpt_1", "hallucinated_chats", "coverage", "scored_turns")
_COLOURS = ("#b4510a", "#6a3fc9", "#0b7a75", "#b3245f", "#1f5fbf", "#4a7a16")
"""Colours of detectors, the same as on the page."""
_PITCH = 0.16
"""Distance of two detectors' points of one chatbot; chatbots are 1 apart."""
_WIDTH_INCHES, _ROW_INCHES, _AXIS_INCHES = 7.0, 0.28, 1.0


def render_cell(report: RunReport, about: str) -> str:
    """Return the results of a run as HTML without style and script: sentences, and a table with coverage.

    Args:
        about: line above them.
    """
    return render_part(
        __package__,
        "notebook.html",
        about=about,
        headlines=render_headlines(report),
        columns=[column for column in COLUMNS if column.value in _FIELDS],
        groups=group_rows(report.rows, "detector", report.detectors),
        notes=describe_omissions(report),
    )


def plot_hallucinations(report: RunReport, detector: str | None = None, ax: Axes | None = None) -> Axes:
    """Draw HPT-1 with its 95% interval for each chatbot, a colour a detector; return the axes.

    Args:
        detector: the one to draw; None: all.
        ax: where to draw; None: a new figure.

    Raises:
        UsageError: no detector of this name has judged, or none at all.
        MissingExtra: matplotlib is not installed.
    """
    require_extra("plots", "matplotlib", use="A plot")
    names = report.detectors if detector is None else [detector]
    rows = [row for row in report.rows if row.detector in names]
    if not rows:
        raise UsageError(_explain_nothing(report, detector))
    chatbots = list(dict.fromkeys(row.chatbot for row in rows))
    if ax is None:
        from matplotlib import pyplot  # a notebook shows the figures that it makes

        height = _AXIS_INCHES + _ROW_INCHES * len(rows)
        ax = pyplot.subplots(figsize=(_WIDTH_INCHES, height), layout="constrained")[1]
    points = []
    for place, name in enumerate(names):
        beside = (place - (len(names) - 1) / 2) * _PITCH
        heights = {chatbot: number + beside for number, chatbot in enumerate(chatbots)}
        colour = _COLOURS[report.detectors.index(name) % len(_COLOURS)]
        points.append(_draw_detector(ax, report.by(name), heights, colour))
    # Names are other people's texts: a dollar sign in one begins no formula.
    ax.set_yticks(range(len(chatbots)), chatbots, parse_math=False)
    ax.set_ylim(len(chatbots) - 0.5, -0.5)
    ax.set_xlim(left=0)
    line = "\nline: 95% interval over personas" if any(row.hpt_1_ci95 for row in rows) else ""
    ax.set_xlabel(f"hallucinations per turn (HPT-1), lower is better{line}")
    for text in ax.legend(points, names, loc="best").get_texts():
        text.set_parse_math(False)
    return ax


def _draw_detector(ax: Axes, rows: Sequence[Row], heights: Mapping[str, float], colour: str) -> Line2D:
    """Draw the points and intervals of one detector, and return the points.

    Args:
        heights: where each chatbot is.
    """
    for row in rows:
        if row.hpt_1_ci95 is not None:
            ax.plot(row.hpt_1_ci95, [heights[row.chatbot]] * 2, color=colour)
        if row.hpt_1 is None:
            ax.text(0, heights[row.chatbot], " not scored", color=colour, va="center", size="small")
    scored = {heights[row.chatbot]: row.hpt_1 for row in rows if row.hpt_1 is not None}
    [points] = ax.plot(list(scored.values()), list(scored), "o", color=colour)
    return points


def _explain_nothing(report: RunReport, detector: str | None) -> str:
    known = ", ".join(report.detectors)
    if detector is None or not known:
        return 'no detector has judged this run: hallulab.detect(run.path, ["lexical"]) does.'
    return (
        f"no detector {detector!r} has judged this run{suggest_name(detector, report.detectors)}. "
        f"It has: {known}."
    )
