"""Rows of numbers as tables on the terminal, at most 80 columns wide: one for each level, and costs."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from rich import box
from rich.console import Console
from rich.table import Table
from rich.text import Text

from scenarios.text.wording import NOTHING, counted, in_brief, noun, number, one_line
from simulator.measure.statistics import LEAST_FOR_INTERVAL, no_interval
from simulator.report.terminal import NARROW, standard_output

Row = Mapping[str, Any]
Columns = Mapping[str, Callable[[Row], str]]


def _plain(field: str, digits: int = 3, scale: float = 1) -> Callable[[Row], str]:
    return lambda row: number(row[field], digits, scale)


def _spread(field: str) -> Callable[[Row], str]:
    """A number in [0, 1] and its interval, such as `0.772 [.71, .83]`."""

    def cell(row: Row) -> str:
        bounds = [f"{bound:.2f}".removeprefix("0") for bound in row[f"{field}_ci95"] or ()]
        return number(row[field], 3) + (f" [{', '.join(bounds)}]" if bounds else "")

    return cell


def _f1(protocol: str) -> Callable[[Row], str]:
    return lambda row: number(row["thresholds"][protocol]["f1"], 3)


_SCORED: Columns = {
    "Cov\n%": _plain("coverage", 0, 100),
    "AUROC [95% CI]": _spread("auroc"),
    "AUPRC": _plain("auprc"),
    "ECE": _plain("ece"),
    "P": _plain("precision"),
    "R": _plain("recall"),
    "F1": _plain("f1"),
    "F1\ntun.": _f1("tuned"),
    "F1\nmax": _f1("oracle"),
}
_WIDE_ONLY = frozenset({"ECE"})
"""Columns for which eighty columns have no room; the page and the JSON have them."""
_SPANS: Columns = {
    "Cov\n%": _plain("coverage", 0, 100),
    "P": _plain("precision"),
    "R": _plain("recall"),
    "F1 [95% CI]": _spread("f1"),
    "Pairwise\nF1": _plain("pairwise_f1"),
    "IoU": _plain("iou"),
    "Exact\nF1": _plain("exact_f1"),
}
_COSTS: Columns = {
    "Thres-\nhold": lambda row: number(row["threshold"], 3),
    "": lambda row: str(row["threshold_protocol"]),
    "Abst.": lambda row: str(row["abstained"]),
    "Failed": lambda row: str(row["failed"]),
    "Cut": lambda row: str(row["truncated"]),
    "Calls\n/reply": _plain("calls_per_reply", 1),
    "Tokens\n/reply": _plain("tokens_per_reply", 0),
    "Cold\ns": _plain("cold_s", 1),
    "p50\nms": _plain("p50_ms", 1),
    "p95\nms": _plain("p95_ms", 1),
}
_NOUNS = {"response": "replies", "sentence": "sentences", "word": "words", "span": "replies with gold spans"}


def print_report(report: Mapping[str, Any], console: Console | None = None) -> None:
    """Print the tables of a benchmark; what is not defined is shown as a dash."""
    console = console or standard_output()
    rows: Sequence[Row] = report["rows"]
    for level in dict.fromkeys(row["level"] for row in rows):
        of_level = [row for row in rows if row["level"] == level]
        console.print(Text(_heading(level, of_level[0])))
        columns = _SPANS if level == "span" else _SCORED
        if console.width < NARROW:
            columns = {name: cell for name, cell in columns.items() if name not in _WIDE_ONLY}
        console.print(table(of_level, columns))
    costs = [row for row in rows if row["level"] == "response" and row["cold_s"] is not None]
    console.print(Text("Cost and failures"))
    console.print(table(costs, _COSTS))
    if report["friedman"] is not None:
        console.print(Text(one_line(friedman_line(report["friedman"]))))
    if report["chats"] is not None:
        _print_chats(report["chats"], console)
    if report["chatbots"] is not None:
        _print_chatbots(report["chatbots"], console)
    console.print(
        Text(
            "F1 tun.: threshold tuned on the other half of the groups; F1 max: the best single threshold on "
            "these scores, chosen on these very items."
        )
    )
    found = (*data_notes(report["data"]), *interval_notes(rows), *notes(costs), *caveats(rows))
    for note in (*found, *reason_lines(costs)):
        console.print(Text(one_line(note)))


def table(rows: Sequence[Row], columns: Columns) -> Table:
    """One line a detector."""
    made = Table(box=box.SIMPLE_HEAD, padding=0, pad_edge=False, show_edge=False)
    made.add_column("Detector", overflow="fold")
    for heading in columns:
        made.add_column(heading.replace("[", "\\["), justify="right", no_wrap=True)
    for row in rows:
        made.add_row(Text(in_brief(row["detector"])), *(Text(cell(row)) for cell in columns.values()))
    return made


def data_notes(data: Mapping[str, Any]) -> list[str]:
    """Sentences on what is not measured on, and what was learnt from."""
    found = []
    if data["left_out"]:
        reasons = (f"{in_brief(reason)} ({lines:,})" for reason, lines in data["left_out"].items())
        found.append(f"Left out of the data, and in no number: {', '.join(reasons)}.")
    if data["folds"]:
        found.append(
            f"{data['split']}: each learner judged every fold as trained on the others, on "
            f"{data['trained_on']:,} replies in the mean; measured on {data['tested_on']:,}."
        )
    elif data["trained_on"]:
        learnt = counted(data["trained_on"], "training example")
        found.append(f"{learnt}: {data['split']}; measured on {data['tested_on']}.")
    if data["groups_in_both"]:
        both = counted(data["groups_in_both"], "group")
        found.append(f"{both} learnt from and measured on: what was learnt there flatters the numbers.")
    found += [f"{name} was not trained here: {reason}" for name, reason in data["not_trained"].items()]
    if data["raters"] is not None:
        found.append(raters_line(data["raters"]))
    return found


def interval_notes(rows: Sequence[Row]) -> list[str]:
    """Why numbers have no interval."""
    found = []
    for level in dict.fromkeys(row["level"] for row in rows):
        of_level = [row for row in rows if row["level"] == level]
        too_few = no_interval(of_level[0]["groups"], "group")
        lacking = [row["detector"] for row in of_level if _lacks_an_interval(row)]
        if too_few is not None:
            found.append(f"{level} level: {too_few}.")
        elif lacking:
            found.append(
                f"{level} level, {', '.join(lacking)}: what fewer than {LEAST_FOR_INTERVAL} groups bear out "
                "(for AUROC: groups with positives, and with negatives) has no interval."
            )
    return found


def _lacks_an_interval(row: Row) -> bool:
    """Whether a number that is there could have an interval, and has none."""
    return any(
        row[f"{field}_ci95"] is None and row[field] is not None
        for field in ("auroc", "auprc", "f1", "balanced_accuracy")
        if f"{field}_ci95" in row
    )


def raters_line(found: Mapping[str, Any]) -> str:
    """How far the people agree who made the labels, in a sentence."""
    label, others = (
        f"AUROC {number(one['auroc'], 3)}, balanced accuracy {number(one['balanced_accuracy'], 3)}, "
        f"F1 {number(one['f1'], 3)}"
        for one in (found["label"], found["others"])
    )
    made = (
        f"{found['ratings']:,} ratings of {found['replies']:,} {noun(found['replies'], 'reply', 'replies')}"
    )
    return (
        f"Raters ({made}): Krippendorff's alpha {number(found['alpha'], 3)}. One rater against the label, in "
        f"which that one has a say: {label}; against the median of the others: {others}."
    )


def notes(costs: Sequence[Row]) -> list[str]:
    """Sentences on what the numbers leave out, and how to read them."""
    found = []
    for row in costs:
        gaps = {"abstained": "abstention", "failed": "failure"}
        listed = ", ".join(counted(row[field], word) for field, word in gaps.items() if row[field])
        if row["parse_failures"]:
            listed += f" ({row['parse_failures']} by an unreadable answer)"
        if listed:
            found.append(f"{row['detector']}: in no number but coverage: {listed}.")
    for row in costs:
        own = row["fold_thresholds"]
        if len(set(own)) > 1:
            spread = f"{number(min(own), 3)} to {number(max(own), 3)}"
            found.append(
                f"{row['detector']}: its threshold is the mean of {len(own)} folds' own, {spread}; each "
                "reply was decided by its fold's."
            )
    batched = [row["detector"] for row in costs if row["batched"]]
    if batched:
        found.append(
            f"Judged in batches (time of a reply is its batch's over its size): {', '.join(batched)}."
        )
    told = [row["detector"] for row in costs if row["told_origin"]]
    if told:
        found.append(f"Told who wrote each reply, which nobody knows of a new chatbot: {', '.join(told)}.")
    replayed = [row["detector"] for row in costs if row["replayed_calls"]]
    if replayed:
        found.append(
            "Answers known before (recorded, or asked for already) take no time, so p50 and p95 are of the "
            "replies without any: "
            f"{', '.join(replayed)}."
        )
    return found


def caveats(rows: Sequence[Row]) -> list[str]:
    """Sentences on what flatters a detector's numbers: cut replies, and quotations that are nowhere."""
    found = []
    for row in rows:
        cut = row["truncated_scored"] + row["truncated_abstained"]
        if row["level"] == "response" and cut:
            found.append(
                f"{row['detector']}: replies cut to fit: {row['truncated_scored']} scored, "
                f"{row['truncated_abstained']} abstained from; one counts only if what was left is flagged, "
                "so no miss among them lowers recall."
            )
    for row in rows:
        if row["level"] == "span" and row["unlocated"]:
            found.append(
                f"{row['detector']}: {counted(row['unlocated'], 'flagged span')} without a place in the "
                "reply: wrong by the exact rule, in no other number on spans."
            )
    return found


def friedman_line(found: Mapping[str, Any]) -> str:
    """The test over all detectors in a sentence."""
    return (
        f"Friedman test over {found['groups']:,} sources, detectors ranked in each by their Brier score: "
        f"{p_value(found['p_value'])}. Mean ranks (1: least error): {_ranks(found)}."
    )


def chats_counted(chats: Mapping[str, Any]) -> str:
    """What the means over conversations count, in a sentence."""
    if chats["counted"] == "spans":
        return "Counted are hallucinations: flagged spans that meet annotated ones."
    return "Counted are turns, not single hallucinations: not every turn says where they are."


def chat_friedman_lines(chats: Mapping[str, Any]) -> list[str]:
    """The tests over all detectors on conversations, a sentence each."""
    return [
        f"Friedman test of {found['metric']} over {counted(found['conversations'], 'chat')}: "
        f"{p_value(found['p_value'])}. Mean ranks (1: highest): {_ranks(found)}."
        for found in chats["friedman"]
    ]


def _ranks(found: Mapping[str, Any]) -> str:
    ranked = sorted(found["mean_ranks"].items(), key=lambda pair: float(pair[1]))
    return ", ".join(f"{name} {number(rank, 2)}" for name, rank in ranked)


def p_value(p: float | None) -> str:
    """A p-value for people; a dash where there was nothing to test."""
    return f"p = {NOTHING if p is None else format(p, '.3g')}"


def reason_lines(costs: Sequence[Row]) -> list[str]:
    """Why judgements are missing, by detector."""
    return [
        f"{row['detector']}: {found['n']} {found['outcome']}: {found['reason']}"
        for row in costs
        for found in row["reasons"]
    ]


def _heading(level: str, row: Row) -> str:
    groups = f"{row['groups']:,} {noun(row['groups'], 'group')}"
    words = f"{level} level: {row['n']:,} {_NOUNS[level]} in {groups}"
    if level == "span":
        return f"{words}, {row['positives']:,} gold spans"
    share = number(row["positives"] / row["n"] if row["n"] else None, 1, 100)
    return f"{words}, {share}% hallucinated"


def _print_chats(chats: Mapping[str, Any], console: Console) -> None:
    console.print(Text(f"Means over conversations. {chats_counted(chats)}"))
    columns: Columns = {
        "Chats": lambda row: str(row["conversations"]),
        "Precision": _plain("precision"),
        "over": lambda row: str(row["precision_over"]),
        "Recall": _plain("recall"),
        "over ": lambda row: str(row["recall_over"]),
    }
    console.print(table(chats["rows"], columns))
    for line in chat_friedman_lines(chats):
        console.print(Text(one_line(line)))
    for test in chats["tests"]:
        console.print(
            Text(
                one_line(
                    f"{test['metric']}, {test['a']} − {test['b']}: {number(test['difference'], 3)} over "
                    f"{test['conversations']} chats, {p_value(test['p_holm'])} (Wilcoxon, Holm)"
                )
            )
        )


def _print_chatbots(chatbots: Sequence[Row], console: Console) -> None:
    console.print(Text("Hallucinations per turn (HPT-1) of each chatbot, by the labels and by detectors"))
    columns: Columns = {
        "Chatbot": lambda row: in_brief(str(row["chatbot"] or f"mean of {row['chatbots']}")),
        "Turns": lambda row: str(row["turns"]),
        "Cov\n%": _plain("coverage", 0, 100),
        "Labels'\nHPT-1": _plain("labels_hpt_1"),
        "HPT-1": _plain("hpt_1"),
        "Error\n%": _plain("error", 0, 100),
    }
    console.print(table(chatbots, columns))
