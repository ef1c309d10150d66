"""The report of a run as documents: a summary for the terminal, and `report.html`.

The page needs no network and trusts no text: templates escape everything, conversations are embedded as JSON
that the page's script puts into the document as text nodes, and a content security policy allows only this
script and style sheet, by hash. Markup that came through anyway could not run or load.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from hallulab.scenarios.text.wording import choose_noun
from hallulab.simulator.metrics.failures import RunFailures
from hallulab.simulator.metrics.fixed_prefix import FixedPrefixSection
from hallulab.simulator.metrics.metric import LAST, READER
from hallulab.simulator.metrics.ranking import explain_intervals
from hallulab.simulator.metrics.results import COLUMNS
from hallulab.simulator.metrics.run_report import RunReport
from hallulab.simulator.records.folder import PAGES
from hallulab.simulator.report.build import (
    RunCounts,
    describe_models,
    describe_omissions,
    load_metrics,
    render_headlines,
)
from hallulab.simulator.report.charts import draw_charts
from hallulab.simulator.report.reader import Cases, PageFile, build_reader
from hallulab.simulator.show.columns import group_rows
from hallulab.simulator.show.document import (
    GAP,
    Details,
    GroupedTable,
    Markup,
    Paragraph,
    Part,
    Section,
    ShownDocument,
)
from hallulab.simulator.show.html import render_page, render_part

_HOW_COUNTED = (
    "HPT-1: hallucinations per scored turn over all conversations; HPT-2: the mean of it over conversations. "
    "TokAcc: share of reply tokens outside every flagged span. Turns that a detector failed on or abstained "
    "from count nowhere."
)


def build_summary(report: RunReport) -> ShownDocument:
    """Return the document for the terminal: findings, tables, and their limits (failures, abstentions)."""
    metrics = sorted(load_metrics(), key=lambda metric: metric.TERMINAL_ORDER)
    tables = [(metric.TERMINAL_ORDER < LAST, part) for metric in metrics for part in metric.tables(report)]
    beside = [line for metric in metrics for line in metric.lines(report)]
    limits = (*beside, *describe_omissions(report), *describe_models(report))
    parts = [
        *(part for is_first, part in tables if is_first),
        *map(Paragraph, limits),
        *(part for is_first, part in tables if not is_first),
    ]
    return ShownDocument(
        "report", "", lead=[*_build_lead(report), GAP], sections=[Section("results", "Results", parts)]
    )


def render_report_page(
    report: RunReport,
    counts: RunCounts,
    cases: Cases | None,
    pages: Sequence[PageFile] = (),
    experiment: str | None = None,
) -> str:
    """Return `report.html`.

    Args:
        report: the result of these counts.
        counts: the run, counted.
        cases: the conversations of the run; None: they are in page files.
        pages: these files.
        experiment: the text of experiment.json, shown as it is; None: not shown.
    """
    if cases is None:
        reader = _list_pages(pages, counts)
    else:
        reader = build_reader(branched=report.of(FixedPrefixSection).fixed_prefix is not None)
    document = build_page(report, counts, experiment, reader)
    return render_page(document, None if cases is None else cases.data())


def build_page(
    report: RunReport, counts: RunCounts, experiment: str | None, reader: Section | None = None
) -> ShownDocument:
    """Return the document for pages.

    Args:
        report: the result of these counts.
        counts: the run, counted.
        experiment: the text of experiment.json, shown as it is; None: not shown.
        reader: section of the conversations; None: they are elsewhere.
    """
    shown = [(metric.ORDER, metric.section(report)) for metric in load_metrics()]
    sections = [
        _build_results(report),
        *(section for order, section in shown if section is not None and order < READER),
        *(() if reader is None else (reader,)),
        *(section for order, section in shown if section is not None and order >= READER),
    ]
    if experiment is not None:
        config = Details("Configuration of the experiment", experiment)
        sections[-1] = replace(sections[-1], parts=[*sections[-1].parts, config])
    counted = (
        (len(report.chatbots), "chatbot"),
        (len(report.detectors), "detector"),
        (len(counts.personas), "persona"),
        (counts.conversations, "conversation"),
        (counts.turns, "turn"),
    )
    return ShownDocument(
        "report",
        ", ".join(sorted(counts.scenarios)) or "empty run",
        facts=[
            (", ".join(sorted(counts.models)), "model"),
            *((number, choose_noun(number, noun)) for number, noun in counted),
        ],
        lead=_build_lead(report),
        sections=sections,
        names=report.detectors,
        coloured=("detector", "all.detector"),
    )


def _build_lead(report: RunReport) -> list[Part]:
    """Return what was found, what failed much as warnings."""
    warnings = report.of(RunFailures).warnings
    return [
        Paragraph(sentence, "note" if sentence in warnings else "finding")
        for sentence in render_headlines(report)
    ]


def _build_results(report: RunReport) -> Section:
    line = any(row.hpt_1_ci95 for row in report.rows)
    legend = f"dot: estimate{'; line: 95% interval over personas' if line else ''}"
    return Section(
        "results",
        "Results",
        [
            draw_charts(report.rows, legend),
            *map(Paragraph, explain_intervals(report)),
            GroupedTable(COLUMNS, group_rows(report.rows, "detector", report.detectors)),
            *(Paragraph(note, "note") for note in describe_omissions(report)),
            *map(Paragraph, (*describe_models(report), _HOW_COUNTED)),
        ],
    )


def _list_pages(pages: Sequence[PageFile], counts: RunCounts) -> Section:
    """Return the section that leads to the page files."""
    shown = sum(page.conversations for page in pages)
    if shown == counts.conversations:
        words = "So many conversations are"
    else:
        words = f"A sample is shown: {shown} of the {counts.conversations} conversations are"
    hint = f"{words} on pages of their own, {len(pages)} files in the folder {PAGES} beside this one."
    links = render_part("hallulab.simulator.report", "pages.html", pages=pages, folder=PAGES)
    return Section("reader", "Conversations", [Paragraph(hint), Markup(links)])
