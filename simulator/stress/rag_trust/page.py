"""The stress test as one HTML file that needs no network and runs no script.

The template escapes everything. The content security policy allows only this style sheet, by hash.
"""

from __future__ import annotations

from collections.abc import Iterator

from hallulab.simulator.bench import curves
from hallulab.simulator.bench.curves import Plot, plot_degradation
from hallulab.simulator.bench.page import get_style_classes
from hallulab.simulator.report.markup import load_asset, render
from hallulab.simulator.stress.rag_trust.config import DIMENSIONS, Dimension
from hallulab.simulator.stress.rag_trust.report import StressReport
from hallulab.simulator.stress.rag_trust.tables import COLUMNS, HEADINGS


def render_page(report: StressReport) -> str:
    """Return the page as HTML."""
    return render(
        __package__,
        "page.html",
        load_asset("hallulab.simulator.report", "page.css")
        + load_asset("hallulab.simulator.bench", "page.css"),
        report=report,
        dimensions=DIMENSIONS,
        headings=HEADINGS,
        columns=COLUMNS,
        groups={dimension: report.groups(dimension) for dimension in DIMENSIONS},
        strategies=list(report.config.strategies),
        plots={dimension: list(_plot_scores(report, dimension)) for dimension in DIMENSIONS},
        box=curves,
        paint=get_style_classes,
    )


def _plot_scores(report: StressReport, dimension: Dimension) -> Iterator[Plot]:
    """Yield a chart for each chatbot and each level of the other attack: scores over levels of the one.

    These are the paper's figures 1 and 2. A grid with a single level has no chart.
    """
    grid = report.config.grid(dimension)
    over, other = ("poison", "distractors") if dimension == "factuality" else ("distractors", "poison")
    levels, others = getattr(grid, over), getattr(grid, other)
    if len(levels) < 2:
        return
    scores = {
        (row.chatbot, row.strategy, getattr(row, over), getattr(row, other)): row.score
        for row in report.of(dimension)
    }
    for bot in report.config.chatbots:
        for fixed in others:
            series: dict[str, list[float | None]] = {
                strategy: [scores[bot.name, strategy, level, fixed] for level in levels]
                for strategy in report.config.strategies
            }
            besides = f", {other} {fixed:g}" if len(others) > 1 else ""
            title = f"{bot.name}: {dimension} over {over}{besides}"
            yield plot_degradation(title, over.capitalize(), "Score", levels, series)
