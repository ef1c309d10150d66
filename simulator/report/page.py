"""`report.html`: a file that needs no network and trusts no text.

A template that escapes everything renders tables and charts. Conversations are embedded as JSON, and the
page's script puts them into the document as text nodes. A content security policy allows only this script and
this style sheet, by hash. Markup that came through anyway could not run or load.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from hallulab.scenarios.text.wording import choose_noun
from hallulab.simulator.metrics.comparisons import explain_intervals
from hallulab.simulator.metrics.failures_counts import RunFailures
from hallulab.simulator.metrics.fixed_prefix import FixedPrefixSection
from hallulab.simulator.metrics.metric import READER, GroupedTable, PageSection
from hallulab.simulator.metrics.results import COLUMNS
from hallulab.simulator.metrics.run_report import RunReport
from hallulab.simulator.metrics.self_judging import mark
from hallulab.simulator.records.folder import PAGES
from hallulab.simulator.report.build import RunCounts, describe_models, describe_omissions, render_headlines
from hallulab.simulator.report.extensions import load_charts, load_metrics
from hallulab.simulator.report.reader import Cases, PageFile
from hallulab.simulator.show.columns import group_rows
from hallulab.simulator.show.html import escape_json, load_asset, mark_safe, render

_PACKAGE = "hallulab.simulator.report"


@dataclass(frozen=True)
class PageView:
    """What the template shows of a report, besides its conversations."""

    title: str
    facts: Sequence[tuple[int | str, str]]
    """Numbers at the top, and what each counts."""
    warnings: Sequence[str]
    """What failed, where it is much: the first headlines."""
    headlines: Sequence[str]
    detectors: Sequence[str]
    """Their names; the place of a name is its colour."""
    charts: Sequence[tuple[str, str]]
    has_intervals: bool
    """Whether a chart has lines."""
    why_no_intervals: Sequence[str]
    """Sentences on those that have none."""
    results: GroupedTable
    notes: Sequence[str]
    footnotes: Sequence[str]
    before: Sequence[PageSection]
    """Sections before the conversations."""
    after: Sequence[PageSection]
    experiment: str | None
    """The text of experiment.json; None: not shown."""


def render_page(
    report: RunReport,
    counts: RunCounts,
    cases: Cases | None,
    pages: Sequence[PageFile] = (),
    experiment: str | None = None,
) -> str:
    """Return the page as HTML.

    Args:
        report: the result of these counts.
        counts: the run, counted.
        cases: the conversations of the run; None: they are in page files.
        pages: these files.
        experiment: the text of experiment.json, shown as it is; None: not shown.
    """
    return render(
        _PACKAGE,
        "page.html",
        load_asset("hallulab.simulator.show", "page.css"),
        None if cases is None else load_asset("hallulab.simulator.show", "page.js"),
        view=build_view(report, counts, experiment),
        mark=mark,
        branched=report.of(FixedPrefixSection).fixed_prefix is not None,
        data=None if cases is None else escape_json(cases.data()),
        pages=pages,
        shown=_describe_shown(pages, counts),
        pages_folder=PAGES,
    )


def _describe_shown(pages: Sequence[PageFile], counts: RunCounts) -> str:
    """Say how many conversations are in page files."""
    shown = sum(page.conversations for page in pages)
    if shown == counts.conversations:
        return "So many conversations are"
    return f"A sample is shown: {shown} of the {counts.conversations} conversations are"


def build_view(report: RunReport, counts: RunCounts, experiment: str | None) -> PageView:
    """Return what pages show of a report.

    Args:
        report: the result of these counts.
        counts: the run, counted.
        experiment: the text of experiment.json, shown as it is; None: not shown.
    """
    shown = [(metric.ORDER, metric.section(report)) for metric in load_metrics()]
    charts = [(chart.caption(report.rows), chart.svg(report.rows)) for chart in load_charts()]
    counted = (
        (len(report.chatbots), "chatbot"),
        (len(report.detectors), "detector"),
        (len(counts.personas), "persona"),
        (counts.conversations, "conversation"),
        (counts.turns, "turn"),
    )
    return PageView(
        title=", ".join(sorted(counts.scenarios)),
        facts=[
            (", ".join(sorted(counts.models)), "model"),
            *((number, choose_noun(number, noun)) for number, noun in counted),
        ],
        warnings=report.of(RunFailures).warnings,
        headlines=render_headlines(report),
        detectors=report.detectors,
        charts=[(title, mark_safe(svg)) for title, svg in charts if svg],
        has_intervals=any(row.hpt_1_ci95 for row in report.rows),
        why_no_intervals=explain_intervals(report),
        results=GroupedTable(COLUMNS, group_rows(report.rows, "detector", report.detectors)),
        notes=describe_omissions(report),
        footnotes=describe_models(report),
        before=[section for order, section in shown if section is not None and order < READER],
        after=[section for order, section in shown if section is not None and order >= READER],
        experiment=experiment,
    )
