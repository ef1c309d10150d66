"""The table as Markdown: one part for each data set, one line for each detector."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from scenarios.text.wording import NOTHING, in_brief, noun, number
from simulator.bench.table import raters_line

Cell = Callable[[Mapping[str, Any]], str]

MARK = "†"
"""Stands beside numbers of what was chosen on the very data set."""


def _plain(field: str, digits: int = 3, level: str = "response", scale: float = 1) -> Cell:
    return lambda line: number(line["rows"][level][field], digits, scale)


def _spread(field: str, level: str = "response") -> Cell:
    """A number and its interval, such as `0.772 [.71, .83]`."""

    def cell(line: Mapping[str, Any]) -> str:
        row = line["rows"][level]
        bounds = [f"{bound:.2f}".removeprefix("0") for bound in row[f"{field}_ci95"] or ()]
        return number(row[field], 3) + (f" [{', '.join(bounds)}]" if bounds else "")

    return cell


def _hpt_error(line: Mapping[str, Any]) -> str:
    """The mean over chatbots, in percent with its sign."""
    [mean] = [row for row in line["chatbots"] if row["chatbot"] is None]
    return NOTHING if mean["error"] is None else f"{mean['error'] * 100:+.0f}%".replace("-", "−")


_COLUMNS: Mapping[str, Cell] = {
    "AUROC [95%]": _spread("auroc"),
    "F1": _plain("f1"),
    "balanced accuracy": _plain("balanced_accuracy"),
    "coverage": lambda line: f"{_plain('coverage', 0, scale=100)(line)}%",
    "calls a reply": _plain("calls_per_reply", 1),
    "computed tokens a reply": _plain("computed_tokens_per_reply", 0),
}
_SENTENCES: Mapping[str, Cell] = {"AUROC of sentences [95%]": _spread("auroc", "sentence")}
_CHATBOTS: Mapping[str, Cell] = {"HPT-1, error": _hpt_error}


def render(report: Mapping[str, Any]) -> str:
    """The whole table.

    Args:
        report: what `--json` writes.
    """
    parts = []
    for data in report["data"]:
        lines = [line for line in report["lines"] if line["dataset"] == data["dataset"]]
        parts.append(
            "\n".join((f"**{data['title']}**: {_size(data)}", "", *_table(lines), *_remarks(data, lines)))
        )
    return "\n\n".join((*parts, _legend(report))) + "\n"


def _size(data: Mapping[str, Any]) -> str:
    replies, groups = data["replies"], data["groups"]
    return (
        f"{replies} {noun(replies, 'reply', 'replies')} in {groups} {noun(groups, 'group')}, "
        f"{number(data['hallucinated'], 0, 100)}% hallucinated; flagging all has F1 "
        f"{number(data['flag_all_f1'], 3)}."
    )


def _table(lines: Sequence[Mapping[str, Any]]) -> list[str]:
    measured = [line for line in lines if line["missing"] is None]
    columns = dict(_COLUMNS)
    if measured and all("sentence" in line["rows"] for line in measured):
        columns |= _SENTENCES
    if measured and all(line["chatbots"] for line in measured):
        columns |= _CHATBOTS
    heading = ("detector", *columns, "learnt")
    rule = ("---", *("---:" for _ in columns), "---")
    found = [_row(heading), _row(rule)]
    for line in lines:
        name = f"`{line['detector']}`"
        if line["missing"] is not None:
            found.append(_row((name, "not measured", *("" for _ in list(columns)[1:]), "")))
            continue
        how = (
            "5 folds"
            if line["learnt"] == "folds"
            else f"as shipped{f' {MARK}' if line['chosen_here'] else ''}"
        )
        found.append(_row((name, *(cell(line) for cell in columns.values()), how)))
    return found


def _row(cells: Sequence[str]) -> str:
    return f"| {' | '.join(cells)} |"


def _remarks(data: Mapping[str, Any], lines: Sequence[Mapping[str, Any]]) -> list[str]:
    """What stands under a part: how far raters agree, and why detectors are missing."""
    found = [] if data["raters"] is None else ["", raters_line(data["raters"])]
    reasons: dict[str, list[str]] = {}
    for line in lines:
        if line["missing"] is not None:
            reasons.setdefault(line["missing"], []).append(f"`{line['detector']}`")
    for reason, names in reasons.items():
        found += ["", f"Not measured: {', '.join(names)} ({in_brief(reason).rstrip('.')})."]
    return found


def _legend(report: Mapping[str, Any]) -> str:
    return (
        f"Detectors that ask a model asked `{report['model']}`. F1, balanced accuracy and HPT-1 are of the "
        "flags at the shipped threshold, or at that learnt with the other folds. 5 folds: each fifth of the "
        "groups is judged as learnt from the other four fifths of these very replies; as shipped: nothing is "
        f"learnt, or these replies cannot teach it; {MARK}: what is shipped was chosen on replies of this "
        "data set, which flatters. HPT-1, error: how far hallucinations per turn are above those of the "
        "labels, mean over chatbots. Intervals: 95% bootstrap over groups. Computed tokens: read and not out "
        "of the server's cache, or written; a dash where the server does not tell."
    )
