"""The benchmark as one HTML file that needs no network and runs no script."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from hallulab.simulator.bench import tables
from hallulab.simulator.bench.curves import (
    Priced,
    plot_configurations,
    plot_frontier,
    plot_precision_recall,
    plot_reliability,
)
from hallulab.simulator.bench.levels import LEVELS, Level
from hallulab.simulator.bench.results import BenchReport
from hallulab.simulator.bench.rows import LevelRow
from hallulab.simulator.bench.sweep import SweepRow
from hallulab.simulator.bench.terminal import (
    explain_chats_counted,
    render_chat_friedman_lines,
    render_friedman_line,
    render_headlines,
    report_notes,
)
from hallulab.simulator.show.plot import Plot, render_page_with_plots
from hallulab.simulator.statistics.detection import Sample

_COSTS = {"p50_ms": "milliseconds a reply (p50)", "tokens_per_reply": "tokens a reply"}


def render_page(report: BenchReport, samples: Mapping[tuple[str, Level], Sample]) -> str:
    """Return the page as HTML.

    Args:
        report: the numbers.
        samples: the data of the curves, by detector and level.
    """
    detectors = list(dict.fromkeys(name for name, _ in samples))
    plots: dict[str, list[Plot]] = {level: [] for level in report.levels}
    for level in LEVELS:
        if level in plots:
            shown = {name: sample for (name, at), sample in samples.items() if at == level}
            rows = [row for row in report.at(level) if isinstance(row, LevelRow)]
            plots[level] = [
                plot_precision_recall(level, shown, detectors),
                plot_reliability(level, rows, detectors),
            ]
    sweep = report.sweep
    # Configurations share answers, so the clock favours later ones; the sweep's own plot adds up requests.
    costs = ("p50_ms", "tokens_per_reply") if sweep is None else ("tokens_per_reply",)
    plots["cost"] = _plot_frontiers({row.detector: row for row in report.replies}, detectors, "auroc", costs)
    if sweep is not None:
        plots["sweep"] = [
            *_plot_frontiers({row.name: row for row in sweep.best_first}, detectors, "f1", tuple(_COSTS)),
            plot_configurations(sweep.best_first, detectors),
        ]
    return render_page_with_plots(
        __package__,
        report=report,
        detectors=detectors,
        plots=plots,
        tables=tables,
        reasons=[
            {"detector": row.detector, **dict(found)} for row in report.replies for found in row.reasons
        ],
        parts=sorted(report.breakdown, key=lambda row: (row.by, row.part)),
        friedman_line=render_friedman_line,
        chats_counted=explain_chats_counted,
        chat_friedman_lines=render_chat_friedman_lines,
        headlines=render_headlines(report),
        notes=report_notes(report),
    )


def _plot_frontiers(
    rows: Mapping[str, LevelRow | SweepRow], detectors: Sequence[str], quality: str, costs: Sequence[str]
) -> list[Plot]:
    """Plot a chart for each cost that any row has; `rows` by name."""
    drawn = (
        plot_frontier(
            [
                Priced(name, getattr(row, quality), getattr(row, cost), row.coverage)
                for name, row in rows.items()
            ],
            _COSTS[cost],
            detectors,
            quality.upper(),
        )
        for cost in costs
    )
    return [plot for plot in drawn if plot is not None]
