"""The results of a benchmark as a document: a table for each level, costs, differences, and notes."""

from __future__ import annotations

from collections.abc import Sequence

from hallulab.scenarios.text.wording import choose_noun, format_count, format_number
from hallulab.simulator.bench.curves import (
    plot_configurations,
    plot_frontiers,
    plot_precision_recall,
    plot_reliability,
)
from hallulab.simulator.bench.notes import (
    explain_chats_counted,
    format_bound,
    format_p_value,
    list_notes,
    render_chat_friedman_lines,
    render_friedman_line,
    render_headlines,
    render_reason_lines,
)
from hallulab.simulator.bench.results import BenchReport, Results
from hallulab.simulator.bench.rows import AnyRow, LevelRow, SpanRow
from hallulab.simulator.bench.sweep import SweepReport
from hallulab.simulator.bench.tables import (
    CHAT_TESTS,
    CHATBOTS,
    CHATS,
    COSTS,
    DIFFERENCES,
    LEVELS,
    PARTS,
    PLANTED,
    REASONS,
    SPANS,
    build_sweep_columns,
)
from hallulab.simulator.show.columns import group_rows
from hallulab.simulator.show.document import (
    FILES,
    PAGE,
    TERMINAL,
    Figures,
    GroupedTable,
    Heading,
    Paragraph,
    Part,
    Section,
    ShownDocument,
)
from hallulab.simulator.show.plot import draw_plots

_HOW_TUNED = (
    "F1 tun.: threshold tuned on the other half of the groups; F1 max: the best single threshold on these "
    "scores, chosen on these very items."
)
_HOW_MEASURED = (
    "Intervals: 95%, over groups of replies that share their source. Tuned: threshold with the best "
    "F1 on the other half of the groups. Maximum: the best single threshold on these scores, chosen on these "
    "very items; flags that are not one threshold can do better. ECE: ten bins of equal width. Flag-all and "
    "majority are floors that need no detector."
)
_NOUNS = {
    "response": ("reply", "replies"),
    "sentence": ("sentence", "sentences"),
    "word": ("word", "words"),
    "span": ("reply with gold spans", "replies with gold spans"),
}


def build_document(results: Results) -> ShownDocument:
    """Return the results as a document; only its page has charts."""
    report, data = results.report, results.report.data
    names = list(dict.fromkeys(name for name, _ in results.samples))
    notes = list_notes(report)
    sections = [
        *(_build_level_section(results, level, names) for level in report.levels),
        Section("", "", [Paragraph(_HOW_MEASURED, on=PAGE)]),
        _build_cost_section(report, names),
        _build_differences_section(report),
    ]
    if report.planted is not None:
        sections.append(_build_planted_section(report))
    sections.append(_build_parts_section(report))
    reasons = render_reason_lines(report.replies)
    lines = [Paragraph(line, on=TERMINAL) for line in (_HOW_TUNED, *notes, *reasons)]
    sections.append(Section("", "", lines))
    if report.sweep is not None:
        sections.append(build_sweep_section(report.sweep, names, data.part))
    facts = [
        (data.tested_on, f"{choose_noun(data.tested_on, 'reply', 'replies')} judged of {data.replies}"),
        (len(names), choose_noun(len(names), "detector")),
    ]
    if data.trained_on:
        facts.append((data.trained_on, f"learnt from{' in the mean' if data.folds else ''} ({data.split})"))
    return ShownDocument(
        "bench",
        data.dataset,
        facts,
        [
            *(Paragraph(line, "finding") for line in render_headlines(report)),
            *(Paragraph(line, "note", FILES) for line in notes),
        ],
        sections,
        names,
        ("detector", "name"),
    )


def _build_level_section(results: Results, level: str, names: Sequence[str]) -> Section:
    """Return the numbers of a level; spans have no scores, and so no curves."""
    rows, part = results.report.at(level), results.report.data.part
    parts: list[Part] = []
    if level != "span":
        shown = {name: sample for (name, at), sample in results.samples.items() if at == level}
        levels = [row for row in rows if isinstance(row, LevelRow)]
        plots = [plot_precision_recall(level, shown, names), plot_reliability(level, levels, names)]
        parts.append(Figures(draw_plots(plots), legend=()))
    columns = SPANS if level == "span" else LEVELS
    heading = _render_heading(rows[0], part)
    parts.append(GroupedTable(columns, [rows], heading, dense=True, bound=format_bound))
    title = f"{level.capitalize()} level"
    return Section(level, _add_part(title, part), parts, title)


def _build_cost_section(report: BenchReport, names: Sequence[str]) -> Section:
    # Configurations share answers, so the clock favours later ones; the sweep's own plot adds up requests.
    fields = ("p50_ms", "tokens_per_reply") if report.sweep is None else ("tokens_per_reply",)
    plots = plot_frontiers({row.detector: row for row in report.replies}, names, "auroc", fields)
    parts: list[Part] = []
    if plots:
        parts += [
            Figures(draw_plots(plots), legend=()),
            Paragraph(
                "Ringed: no other detector is at least as good, as cheap, and scored as many replies. No "
                "cost stands at 0, left of the logarithmic axis. Without a known cost a detector is "
                "not on the chart.",
                on=PAGE,
            ),
        ]
    parts.append(GroupedTable(COSTS, [report.replies], _add_part("Cost and failures", report.data.part)))
    reasons = [{"detector": row.detector, **dict(found)} for row in report.replies for found in row.reasons]
    if reasons:
        parts += [
            Heading("Why judgements are missing", FILES),
            Paragraph("At most five reasons a detector, the most frequent first.", on=FILES),
            GroupedTable(REASONS, [reasons], on=FILES),
        ]
    if report.parts_by_meta:
        parts.append(GroupedTable(PARTS, [report.parts_by_meta], "Replies by fields of meta", on=TERMINAL))
    return Section("cost", _add_part("Cost", report.data.part), parts, "Cost")


def _build_differences_section(report: BenchReport) -> Section:
    """Return differences between detectors, on items and on conversations; then rates of chatbots."""
    parts: list[Part] = [
        Paragraph("a − b on what both scored, paired by group.", on=PAGE),
        GroupedTable(DIFFERENCES, [report.comparisons], on=FILES),
    ]
    if report.friedman is not None:
        parts.append(Paragraph(render_friedman_line(report.friedman), ""))
    if report.chats is not None:
        chats, counted = report.chats, explain_chats_counted(report.chats)
        parts += [
            Heading("Means over conversations", FILES),
            Paragraph(counted, on=FILES),
            GroupedTable(CHATS, [chats.rows], f"Means over conversations. {counted}"),
            *(Paragraph(line, "") for line in render_chat_friedman_lines(chats.friedman)),
            *(
                Paragraph(
                    f"{test.metric}, {test.a} − {test.b}: {format_number(test.difference, 3)} over "
                    f"{test.conversations} chats, {format_p_value(test.p_holm)} (Wilcoxon, Holm)",
                    on=TERMINAL,
                )
                for test in chats.tests
            ),
            GroupedTable(CHAT_TESTS, [chats.tests], on=FILES),
        ]
    if report.chatbots is not None:
        heading = "Hallucinations per turn (HPT-1) of each chatbot, by the labels and by detectors"
        parts.append(GroupedTable(CHATBOTS, [report.chatbots], heading, on=TERMINAL))
    return Section("differences", _add_part("Differences", report.data.part), parts, "Differences")


def _build_planted_section(report: BenchReport) -> Section:
    rows = report.planted or ()
    names = list(dict.fromkeys(row.detector for row in rows))
    by_detector = group_rows((row for row in rows if row.is_margin), "detector", names)
    cells = [row for row in rows if not row.is_margin]
    heading = "Planted errors, by kind, turns before the reply, and passages of the evidence"
    parts: list[Part] = [
        Paragraph(
            "Pairs of an error and its clean twin, by kind, turns before the reply, and passages of the "
            "evidence; “all”: over all of them. Intervals: 95%, over groups, from six of them, where "
            "not all are alike.",
            on=PAGE,
        ),
        GroupedTable(PLANTED, by_detector, heading, dense=True, bound=format_bound),
        Heading("Each kind at each turn and length", FILES),
        GroupedTable(PLANTED, [cells], dense=True, on=FILES),
    ]
    return Section("planted", _add_part("Planted errors", report.data.part), parts, "Planted errors")


def _build_parts_section(report: BenchReport) -> Section:
    parts: list[Part] = [
        Paragraph(
            "By error type: items with that kind of gold span against all clean items; recall is the share "
            "of that kind that is found.",
            on=PAGE,
        )
    ]
    rows = sorted(report.breakdown, key=lambda row: (row.by, row.part))
    for level in report.levels:
        if level != "span":
            parts.append(Heading(f"{level.capitalize()} level"))
            parts.append(GroupedTable(PARTS, [[row for row in rows if row.level == level]]))
    return Section("parts", _add_part("Parts", report.data.part), parts, "Parts", on=FILES)


def build_sweep_section(sweep: SweepReport, names: Sequence[str], part: str = "") -> Section:
    """Return the configurations, highest F1 first: the columns of MetaRAG's tables 2 and 3.

    Args:
        names: the evaluated detectors, in the order of their colours.
        part: the share of the replies that they are measured on; empty: all.
    """
    varied, repeats = sweep.file.varied, sweep.file.repeats
    columns, title = build_sweep_columns(varied), _add_part(f"Sweep of {sweep.file.detector}", part)
    by_name = {row.name: row for row in sweep.best_first}
    plots = [
        *plot_frontiers(by_name, names, "f1", ("p50_ms", "tokens_per_reply")),
        plot_configurations(sweep.best_first, names),
    ]
    parts: list[Part] = [
        Figures(draw_plots(plots)),
        Paragraph(
            f"{format_count(repeats, 'repeat')} of each configuration; mean ± standard deviation (n − 1), "
            "coefficient of variation of F1. All other sections have the first repeat. p50: of what the "
            "requests of a reply took, added up; without requests, by the clock. Unbeaten (ringed): no other "
            "configuration is at least as good and as cheap, and scored as many replies, by F1 and tokens, "
            "F1 and time, or precision and recall (P/R).",
            on=PAGE,
        ),
        GroupedTable(
            columns,
            [sweep.best_first],
            f"{title}, {repeats} seeds each. Config: {' / '.join(varied)}",
            dense=True,
        ),
        Paragraph(
            "Front: none is as good, as cheap, and covers as much; F1 and T tokens, L latency; P: P and R.",
            on=TERMINAL,
        ),
        Paragraph(
            "p50: of what the requests of a reply took, added up; without requests, by the clock.",
            on=TERMINAL,
        ),
    ]
    for metric, rows in sweep.leaders.items():
        parts += [
            Heading(f"Best four by {metric}", FILES),
            GroupedTable(columns, [rows], dense=True, on=FILES),
        ]
    return Section("sweep", title, parts, "Sweep")


def _add_part(heading: str, part: str) -> str:
    return f"{heading} ({part})" if part else heading


def _render_heading(row: AnyRow, part: str) -> str:
    groups = f"{row.groups:,} {choose_noun(row.groups, 'group')}"
    if part and row.level == "response":
        words = f"response level: {part} in {groups}"
    else:
        counted = f"{row.n:,} {choose_noun(row.n, *_NOUNS[row.level])}"
        words = f"{_add_part(f'{row.level} level', part)}: {counted} in {groups}"
    if isinstance(row, SpanRow):
        return f"{words}, {row.positives:,} gold {choose_noun(row.positives, 'span')}"
    share = format_number(row.positives / row.n if row.n else None, 1, 100)
    return f"{words}, {share}% hallucinated"
