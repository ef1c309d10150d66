"""`report.html`: a file that needs no network and trusts no text.

A template that escapes everything renders tables and charts. Conversations are embedded as JSON, and the
page's script puts them into the document as text nodes. A content security policy allows only this script and
this style sheet, by hash. Markup that came through anyway could not run or load.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from hallulab.simulator.measure.attacks import AttackRow
from hallulab.simulator.report import charts, tables
from hallulab.simulator.report.browser import Cases
from hallulab.simulator.report.charts import build_chart
from hallulab.simulator.report.correcting import describe_corrections
from hallulab.simulator.report.counting import RunCounts
from hallulab.simulator.report.document import RunReport
from hallulab.simulator.report.fixed_prefix import describe_fixed_prefix
from hallulab.simulator.report.headlines import describe_planning, explain_intervals, render_headlines
from hallulab.simulator.report.markup import escape_json, load_asset, render
from hallulab.simulator.report.pages import PageFile
from hallulab.simulator.report.self_judging import mark
from hallulab.simulator.report.terminal import describe_models, describe_omissions
from hallulab.simulator.runs.folder import PAGES

_PACKAGE = "hallulab.simulator.report"


def render_page(
    report: RunReport,
    counts: RunCounts,
    cases: Cases | None,
    pages: Sequence[PageFile] = (),
    experiment: str | None = None,
) -> str:
    """Return the page as HTML.

    Args:
        report: the result of `build_report` on the same counts.
        counts: the run, counted.
        cases: the conversations of the run; None: they are in page files.
        pages: these files.
        experiment: the text of experiment.json, shown as it is; None: not shown.
    """
    chatbots, detectors = report.chatbots, report.detectors
    fixed = report.fixed_prefix
    sound = report.simulator_audit.rows_without_affected
    both = [{"all": row, "without": other} for row, other in zip(report.rows, sound, strict=True)]
    drawn = [
        build_chart(report.rows, "hpt_1", "Hallucinations per turn (HPT-1), lower is better", 1, "", None),
        build_chart(report.rows, "tokacc_1", "Token accuracy (TokAcc-1), higher is better", 100, "%", 100),
    ]
    return render(
        _PACKAGE,
        "page.html",
        load_asset(_PACKAGE, "page.css"),
        None if cases is None else load_asset(_PACKAGE, "page.js"),
        report=report,
        tables=tables,
        results=[report.by(detector) for detector in detectors],
        concentration=[[row for row in report.concentration if row.detector == name] for name in detectors],
        corrected=[[row for row in report.corrected if row.detector == name] for name in detectors],
        by_depth=[[row for row in report.corrected_by_depth if row.detector == name] for name in detectors],
        correction_lines=describe_corrections(report.corrected),
        pairs={detector: _join_comparisons(report, detector) for detector in detectors},
        attacks=_group_by_chatbot(report),
        audited=[[pair for pair in both if pair["all"].detector == detector] for detector in detectors],
        chatbots=chatbots,
        detectors=detectors,
        scenarios=sorted(counts.scenarios),
        models=sorted(counts.models),
        personas=len(counts.personas),
        conversations=counts.conversations,
        turns=counts.turns,
        beside=[[row for row in fixed.rows if row.detector == name] for name in detectors] if fixed else [],
        remaining={
            name: [line for line in fixed.comparisons if line.detector == name] if fixed else []
            for name in detectors
        },
        fixed_prefix_lines=describe_fixed_prefix(report),
        headlines=render_headlines(report),
        interval_lines=explain_intervals(report),
        planning_lines=describe_planning(report),
        notes=describe_omissions(report),
        model_lines=describe_models(report),
        mark=mark,
        charts=drawn,
        geometry=charts,
        experiment=experiment,
        branched=fixed is not None,
        data=None if cases is None else escape_json(cases.data()),
        pages=pages,
        pages_folder=PAGES,
    )


def _join_comparisons(report: RunReport, detector: str) -> list[dict[str, Any]]:
    """Join the comparisons of both metrics for every two chatbots under a detector."""
    found: dict[tuple[str, str], dict[str, Any]] = {}
    for line in report.comparisons:
        if line.detector == detector:
            found.setdefault((line.a, line.b), {"a": line.a, "b": line.b})[line.metric] = line
    return list(found.values())


def _group_by_chatbot(report: RunReport) -> list[list[AttackRow]]:
    """Return the rows of the attack in groups, one a chatbot."""
    rows = report.attacks or ()
    return [[row for row in rows if row.chatbot == name] for name in report.chatbots] if rows else []
