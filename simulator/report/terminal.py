"""The table of a run for the terminal: the columns of the HalluDetect paper's chatbot table."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from rich import box
from rich.console import Console
from rich.table import Table
from rich.text import Text

from scenarios.text.wording import counted, in_brief, noun, number, one_line, with_interval
from simulator.report.headlines import headlines, interval_lines
from simulator.report.self_judging import mark, self_judging_notes

WIDTH = 112
"""Columns used when standard output is no terminal."""
NARROW = 100
"""Columns below which names would be folded: intervals and detectors then stand on lines of their own."""


def standard_output() -> Console:
    """A console on standard output, `WIDTH` columns wide where that is no terminal."""
    console = Console()
    return console if console.is_terminal else Console(width=WIDTH)


def print_report(report: Mapping[str, Any], console: Console | None = None) -> None:
    """Print the table, what it says of the chatbots, and what limits it (failures, abstentions, flaws of the
    simulated user)."""
    console = console or standard_output()
    console.print(table(report, narrow=console.width < NARROW))
    found = (*headlines(report), *interval_lines(report["rows"]))
    for line in (
        *found,
        *agreement_lines(report["agreement"]),
        *notes(report),
        *reading_lines(report["read_how"]),
    ):
        console.print(Text(one_line(line)))


def table(report: Mapping[str, Any], narrow: bool = False) -> Table:
    """A row for each chatbot and detector; `narrow` fits 80 columns."""
    result = Table(box=box.SIMPLE_HEAD, pad_edge=False, show_edge=False, padding=0)
    for header in ("Chatbot",) if narrow else ("Chatbot", "Detector"):
        result.add_column(header, overflow="fold")
    ci = "\n\\[95% CI]" if any(row["hpt_1_ci95"] for row in report["rows"]) else ""
    for header in (
        "Calls/\nreply",
        f"HPT-1{ci}",
        "HPT-2",
        f"TokAcc-1 %{ci}",
        "TokAcc\n-2 %",
        "Halluc.\nchats %",
        "Cov.\n%",
    ):
        result.add_column(header, justify="right", no_wrap=True)
    previous = None
    for row in sorted(report["rows"], key=_by_detector(report["rows"])):
        if previous not in (None, row["detector"]):
            result.add_section()
        if narrow and previous != row["detector"]:
            result.add_row(Text(f"by {in_brief(row['detector'])}"))
        previous = row["detector"]
        hpt = with_interval(row["hpt_1"], row["hpt_1_ci95"], 2)
        tokacc = with_interval(row["tokacc_1"], row["tokacc_1_ci95"], 1, 100)
        chatbot = Text(f"{in_brief(row['chatbot'])}{mark(row)}")
        result.add_row(
            *([chatbot] if narrow else [chatbot, Text(in_brief(row["detector"]))]),
            number(row["calls_per_reply"], 1),
            Text(hpt.replace(" [", "\n[") if narrow else hpt),
            number(row["hpt_2"], 2),
            Text(tokacc.replace(" [", "\n[") if narrow else tokacc),
            number(row["tokacc_2"], 1, 100),
            number(row["hallucinated_chats"], 0, 100),
            number(row["coverage"], 0, 100),
        )
    return result


def notes(report: Mapping[str, Any]) -> list[str]:
    """Sentences on what the numbers leave out, and which of them go in a circle."""
    found = self_judging_notes(report)
    found += [
        f"{line['chatbot']}: {line['failed']} of {counted(line['conversations'], 'conversation')} failed: "
        f"{in_brief(line['first_error'])}"
        for line in report["failures"]
    ]
    for line in report["cut_replies"]:
        replies = f"{line['replies']} {noun(line['replies'], 'reply', 'replies')}"
        found.append(
            f"{line['chatbot']}: {line['cut']} of {replies} reached the limit of tokens and may be cut off "
            "(`reply_tokens`, or the chatbot's `max_tokens`)."
        )
    for detector in dict.fromkeys(row["detector"] for row in report["rows"]):
        rows = [row for row in report["rows"] if row["detector"] == detector]
        gaps = {
            words: total
            for field, words in (
                ("failed", "failed"),
                ("abstained", "abstained"),
                ("not_localised", "scored without places"),
                ("missing", "not judged"),
            )
            if (total := sum(row[field] for row in rows))
        }
        if gaps:
            turns = counted(sum(row["turns"] for row in rows), "turn")
            listed = ", ".join(f"{total} {words}" for words, total in gaps.items())
            enter = "it enters" if sum(gaps.values()) == 1 else "these enter"
            found.append(f"{detector}: of {turns} {listed}; {enter} no number.")
        unlocated = sum(row["unlocated"] for row in rows)
        if unlocated:
            total = counted(sum(row["hallucinations"] for row in rows), "hallucination")
            were, they_count = ("was", "it counts") if unlocated == 1 else ("were", "they count")
            found.append(
                f"{detector}: {unlocated} of {total} {were} not found verbatim in the reply; "
                f"{they_count} in HPT, not in TokAcc."
            )
    audit = report["simulator_audit"]
    affected = audit["affected_conversations"]
    if affected:
        kinds = ", ".join(f"{kind} {count}" for kind, count in sorted(audit["flaws"].items()))
        have, them = ("has", "it") if affected == 1 else ("have", "them")
        found.append(
            f"simulated user: {affected} of {counted(audit['conversations'], 'conversation')} "
            f"{have} flaws ({kinds}); the report gives the numbers without {them} too."
        )
    unknown = report["unknown_personas"]
    if unknown:
        found.append(
            f"simulated user: the audit knows nothing of {in_brief(', '.join(unknown))}: the scenario pack "
            "is not found, or lacks them."
        )
    return found


def reading_lines(read_how: Sequence[Mapping[str, Any]]) -> list[str]:
    """How each model's answers were read."""
    return [
        f"{in_brief(one['model'])} was read by: {one['decisions']}, "
        f"JSON {one['json'].removeprefix('JSON ')}, seed {one['seed']}"
        f"{'' if one['asked'] else ' (assumed, the endpoint did not say)'}."
        for one in read_how
    ]


def agreement_lines(agreement: Mapping[str, Any]) -> list[str]:
    """How far the detectors agree on which turns to flag; nothing where only one judged."""
    found = [
        f"agreement of {pair['a']} and {pair['b']}: {number(pair['agreement'], 0, 100)}% of "
        f"{counted(pair['turns'], 'turn')}, kappa {number(pair['kappa'], 2)}."
        for pair in agreement["pairs"]
        if pair["turns"]
    ]
    if len(found) > 1:
        turns = counted(agreement["turns"], "turn")
        found.append(
            f"agreement of all detectors: Krippendorff's alpha {number(agreement['alpha'], 2)} over {turns}."
        )
    return found


def _by_detector(rows: Sequence[Mapping[str, Any]]) -> Any:
    order = list(dict.fromkeys(row["detector"] for row in rows))
    return lambda row: order.index(row["detector"])
