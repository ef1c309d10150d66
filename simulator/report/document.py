"""The report of a run as documents: a summary for the terminal, and `report.html`.

The page needs no network and trusts no text: templates escape everything, conversations are embedded as JSON
that the page's script puts into the document as text nodes, and a content security policy allows only this
script and style sheet, by hash. Markup that came through anyway could not run or load.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from hallulab.scenarios.chats import record
from hallulab.scenarios.text.wording import choose_noun
from hallulab.simulator.metrics.failures import RunFailures
from hallulab.simulator.metrics.fixed_prefix import FixedPrefixSection
from hallulab.simulator.metrics.metric import LAST
from hallulab.simulator.metrics.ranking import explain_intervals
from hallulab.simulator.metrics.results import COLUMNS, FIRST_COLUMNS
from hallulab.simulator.metrics.run_report import RunReport
from hallulab.simulator.records.folder import PAGES
from hallulab.simulator.report.build import (
    RunCounts,
    describe_models,
    describe_omissions,
    load_metrics,
    render_headlines,
)
from hallulab.simulator.report.charts import draw_charts, draw_first_chart
from hallulab.simulator.report.first_screen import Address, build_marked_replies, build_rows
from hallulab.simulator.report.page_files import PageFile, build_reader, name_turn
from hallulab.simulator.report.reader import Cases
from hallulab.simulator.show.columns import group_rows
from hallulab.simulator.show.document import (
    GAP,
    Details,
    Folded,
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
        cases: the conversations of the run; None: they are in page files.
        experiment: the text of experiment.json, shown as it is; None: not shown.
    """
    if cases is None:
        reader, held = _list_pages(pages, counts), {f"{PAGES}/{page.name}": page.ids for page in pages}
    else:
        reader, held = build_reader(report.of(FixedPrefixSection).fixed_prefix is not None), {"": cases.ids}

    def address(conversation: str, turn: int) -> str | None:
        where = next((file for file, ids in held.items() if conversation in ids), None)
        return None if where is None else f"{where}#{name_turn(conversation, turn)}"

    document = build_page(report, counts, experiment, address, reader)
    return render_page(document, None if cases is None else cases.data())


def build_page(
    report: RunReport,
    counts: RunCounts,
    experiment: str | None,
    address: Address,
    reader: Sequence[Part] = (),
) -> ShownDocument:
    """Return the document for pages.

    Args:
        experiment: the text of experiment.json, shown as it is; None: not shown.
        reader: what shows the conversations; empty: they are elsewhere.
    """
    rows = build_rows(counts.worst, report.detectors, address, counts.conversations)
    conversations = [*rows, *reader]
    shown = (metric.section(report) for metric in load_metrics())
    sections = [
        _build_results(report),
        *([Section("reader", "Conversations", conversations)] if conversations else []),
        *(section for section in shown if section is not None),
    ]
    if experiment is not None:
        config = Details("Configuration of the experiment", experiment)
        sections[-1] = replace(sections[-1], parts=[*sections[-1].parts, config])
    first, _ = _split_findings(report)
    scenarios = ", ".join(sorted(name for name in counts.scenarios if name != record.SCENARIO))
    return ShownDocument(
        "report",
        scenarios or ("Imported conversations" if counts.scenarios else "empty run"),
        facts=_count_facts(report, counts),
        lead=[*first, *build_marked_replies(counts.worst, report.detectors, address)],
        sections=sections,
        names=report.detectors,
        coloured=("detector", "all.detector"),
    )


def _count_facts(report: RunReport, counts: RunCounts) -> list[tuple[int | str, str]]:
    """Return what the page's head counts: no persona of chats that were imported or typed by a person."""
    models = [name for name in sorted(counts.models) if name != record.MODEL]
    counted = [
        (len(report.chatbots), "chatbot"),
        (len(report.detectors), "detector"),
        *([] if report.imported else [(len(counts.personas), "persona")]),
        (counts.conversations, "conversation"),
        (counts.turns, "turn"),
    ]
    return [
        *([(", ".join(models), "model")] if models else []),
        *((number, choose_noun(number, noun)) for number, noun in counted),
    ]


def _build_lead(report: RunReport) -> list[Paragraph]:
    """Return what was found, what failed much as warnings."""
    warnings = report.of(RunFailures).warnings
    return [
        Paragraph(sentence, "note" if sentence in warnings else "finding")
        for sentence in render_headlines(report)
    ]


def _split_findings(report: RunReport) -> tuple[list[Paragraph], list[Paragraph]]:
    """Return the warnings and the first finding, which a page has on top, and the other findings."""
    lead = _build_lead(report)
    first = next((at for at, one in enumerate(lead) if one.style == "finding"), len(lead))
    return lead[: first + 1], lead[first + 1 :]


def _build_results(report: RunReport) -> Section:
    """Return the numbers: one chart and five columns, the others folded away."""
    line = "; line: 95% interval over personas" if any(row.hpt_1_ci95 for row in report.rows) else ""
    groups = group_rows(report.rows, "detector", report.detectors)
    return Section(
        "results",
        "Results",
        [
            *_split_findings(report)[1],
            *draw_first_chart(report.rows, report.detectors, line),
            *map(Paragraph, explain_intervals(report)),
            GroupedTable(FIRST_COLUMNS, groups),
            Folded(
                "All columns and charts",
                [GroupedTable(COLUMNS, groups), draw_charts(report.rows, f"dot: estimate{line}")],
            ),
            *(Paragraph(note, "note") for note in describe_omissions(report)),
            *map(Paragraph, (*describe_models(report), _HOW_COUNTED)),
        ],
    )


def _list_pages(pages: Sequence[PageFile], counts: RunCounts) -> list[Part]:
    """Return what leads to the page files."""
    shown = sum(page.conversations for page in pages)
    if shown == counts.conversations:
        words = "So many conversations are"
    else:
        words = f"A sample is shown: {shown} of the {counts.conversations} conversations are"
    hint = f"{words} on pages of their own, {len(pages)} files in the folder {PAGES} beside this one."
    links = render_part("hallulab.simulator.report", "pages.html", pages=pages, folder=PAGES)
    return [Paragraph(hint), Markup(links)]
