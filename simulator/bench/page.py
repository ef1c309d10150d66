"""The benchmark as one HTML file that needs no network and runs no script.

Everything is escaped by the template; the content security policy allows this very style sheet, by hash, and
nothing else.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from simulator.bench.curves import (
    BOTTOM,
    HEIGHT,
    LEFT,
    RIGHT,
    TOP,
    WIDTH,
    Plot,
    frontier,
    precision_recall,
    reliability_plot,
)
from simulator.bench.levels import LEVELS, Level
from simulator.bench.sweep_table import best_first, option_value
from simulator.bench.table import (
    caveats,
    chat_friedman_lines,
    chats_counted,
    data_notes,
    friedman_line,
    interval_notes,
    notes,
)
from simulator.measure.detection import Sample
from simulator.report.markup import asset, render

_COLOURS = 6
_FRONTS = {"tokens": "tokens", "latency": "time", "precision_recall": "P/R"}
_COSTS = {"p50_ms": "milliseconds a reply (p50)", "tokens_per_reply": "tokens a reply"}


def render_page(report: Mapping[str, Any], samples: Mapping[tuple[str, Level], Sample]) -> str:
    """The whole page as HTML.

    Args:
        report: what `--json` writes.
        samples: what curves are drawn from, by detector and level.
    """
    rows = report["rows"]
    detectors = list(dict.fromkeys(name for name, _ in samples))
    levels = list(dict.fromkeys(row["level"] for row in rows))
    plots: dict[str, list[Plot]] = {level: [] for level in levels}
    for level in LEVELS:
        if level in plots:
            shown = {name: sample for (name, at), sample in samples.items() if at == level}
            plots[level] = [
                precision_recall(level, shown, detectors),
                reliability_plot(level, rows, detectors),
            ]
    costs = [row for row in rows if row["level"] == "response" and row["detector"] in detectors]
    sweep = report.get("sweep")
    # Configurations share answers, so the clock favours later ones; the sweep's own plot adds up requests.
    shown_costs = _COSTS if sweep is None else {"tokens_per_reply": _COSTS["tokens_per_reply"]}
    plots["cost"] = _frontiers(costs, detectors, "auroc", shown_costs)
    configurations = [] if sweep is None else best_first(sweep)
    swept = [{**row, "detector": row["name"]} for row in configurations]
    plots["sweep"] = _frontiers(swept, detectors, "f1", _COSTS)
    return render(
        "simulator.bench",
        "page.html",
        asset("simulator.report", "page.css") + asset("simulator.bench", "page.css"),
        report=report,
        detectors=detectors,
        levels=levels,
        plots=plots,
        sweep=sweep,
        configurations=configurations,
        fronts=_FRONTS,
        friedman=None if report["friedman"] is None else friedman_line(report["friedman"]),
        chats_counted=None if report["chats"] is None else chats_counted(report["chats"]),
        chat_friedman=[] if report["chats"] is None else chat_friedman_lines(report["chats"]),
        option_value=option_value,
        box={
            "width": WIDTH,
            "height": HEIGHT,
            "left": LEFT,
            "right": RIGHT,
            "top": TOP,
            "bottom": BOTTOM,
        },
        notes=[*data_notes(report["data"]), *interval_notes(rows), *notes(costs), *caveats(rows)],
        paint=paint,
    )


def paint(number: int) -> str:
    """Style classes of a detector by its number: six colours, then the same ones hollow and dashed."""
    return f"d{number % _COLOURS}" + (" hollow" if number // _COLOURS % 2 else "")


def _frontiers(
    rows: Sequence[Mapping[str, Any]], detectors: Sequence[str], quality: str, costs: Mapping[str, str]
) -> list[Plot]:
    drawn = (frontier(rows, cost, label, detectors, quality) for cost, label in costs.items())
    return [plot for plot in drawn if plot is not None]
