"""The table as Markdown: one part a data set, one line a detector."""

from __future__ import annotations

from collections.abc import Sequence

from benchmarks.detectors_table.measuring import DetectorNumbers, Line, Unmeasured
from benchmarks.detectors_table.running import TableReport
from benchmarks.detectors_table.samples import Described
from hallulab.scenarios.text.wording import NOTHING, choose_noun, format_number, shorten_line
from hallulab.simulator.bench.terminal import format_bound, render_raters_line
from hallulab.simulator.report.columns import Column, build_decimal_format

MARK = "†"
"""Stands beside numbers whose detector was tuned on the same data set."""


def _signed(share: float | None) -> str:
    """Format a share in percent, with its sign."""
    return NOTHING if share is None else f"{share * 100:+.0f}%".replace("-", "−")


_THREE = build_decimal_format(3)
_COLUMNS = (
    Column("AUROC [95%]", "rows.response.auroc", format=_THREE, beside="rows.response.auroc_ci95"),
    Column("F1", "rows.response.f1", format=_THREE),
    Column("balanced accuracy", "rows.response.balanced_accuracy", format=_THREE),
    Column("coverage", "rows.response.coverage", format=lambda share: f"{format_number(share, 0, 100)}%"),
    Column("calls a reply", "rows.response.calls_per_reply", format=build_decimal_format(1)),
    Column(
        "computed tokens a reply", "rows.response.computed_tokens_per_reply", format=build_decimal_format(0)
    ),
)
_SENTENCES = Column(
    "AUROC of sentences [95%]", "rows.sentence.auroc", format=_THREE, beside="rows.sentence.auroc_ci95"
)
_CHATBOTS = Column("HPT-1, error", "hpt_error", format=_signed)


def render(report: TableReport) -> str:
    """Return the whole table."""
    parts = []
    for data in report.data:
        lines = [line for line in report.lines if line.dataset == data.dataset]
        parts.append(
            "\n".join((f"**{data.title}**: {_size(data)}", "", *_table(lines), *_remarks(data, lines)))
        )
    return "\n\n".join((*parts, _legend(report))) + "\n"


def _size(data: Described) -> str:
    replies, groups = data.replies, data.groups
    return (
        f"{replies} {choose_noun(replies, 'reply', 'replies')} in {groups} {choose_noun(groups, 'group')}, "
        f"{format_number(data.hallucinated, 0, 100)}% hallucinated; flagging all has F1 "
        f"{format_number(data.flag_all_f1, 3)}."
    )


def _table(lines: Sequence[Line]) -> list[str]:
    measured = [line for line in lines if isinstance(line, DetectorNumbers)]
    columns = list(_COLUMNS)
    if measured and all("sentence" in line.rows for line in measured):
        columns.append(_SENTENCES)
    if measured and all(line.chatbots for line in measured):
        columns.append(_CHATBOTS)
    heading = ("detector", *(column.label for column in columns), "learnt")
    rule = ("---", *("---:" for _ in columns), "---")
    found = [_row(heading), _row(rule)]
    for line in lines:
        name = f"`{line.detector}`"
        if isinstance(line, Unmeasured):
            found.append(_row((name, "not measured", *("" for _ in columns))))
            continue
        name += "" if line.part is None else f" ({line.part} replies)"
        how = "5 folds" if line.learnt == "folds" else f"as shipped{f' {MARK}' if line.chosen_here else ''}"
        found.append(_row((name, *(_cell(column, line) for column in columns), how)))
    return found


def _cell(column: Column, line: Line) -> str:
    return " ".join(filter(None, (column.text(line), column.aside(line, format_bound))))


def _row(cells: Sequence[str]) -> str:
    return f"| {' | '.join(cells)} |"


def _remarks(data: Described, lines: Sequence[Line]) -> list[str]:
    """Write the lines under a part: agreement of raters, and why detectors are missing."""
    found = [] if data.raters is None else ["", render_raters_line(data.raters)]
    reasons: dict[str, list[str]] = {}
    for line in lines:
        if line.missing is not None:
            reasons.setdefault(line.missing, []).append(f"`{line.detector}`")
    for reason, names in reasons.items():
        found += ["", f"Not measured: {', '.join(names)} ({shorten_line(reason).rstrip('.')})."]
    return found


def _legend(report: TableReport) -> str:
    return (
        f"Detectors that ask a model asked `{report.model}`. F1, balanced accuracy and HPT-1 are of the "
        "flags at the shipped threshold, or at that learnt with the other folds. 5 folds: each fifth of the "
        "groups is judged as learnt from the other four fifths of these very replies; as shipped: nothing is "
        f"learnt, or these replies cannot teach it; {MARK}: what is shipped was chosen on replies of this "
        "data set, which flatters. HPT-1, error: how far hallucinations per turn are above those of the "
        "labels, mean over chatbots. Intervals: 95% bootstrap over groups. Computed tokens: read and not out "
        "of the server's cache, or written; a dash where the server does not tell. A number of replies after "
        "a name: it was measured on so many of them, drawn by the seed."
    )
