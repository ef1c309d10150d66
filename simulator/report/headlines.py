"""Findings in words: what stands first on the page and below the table of the terminal."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from scenarios.text.wording import counted, with_interval
from simulator.report.self_judging import mark


def headlines(report: Mapping[str, Any]) -> list[str]:
    """A few sentences a detector: the best chatbot where the paired test names one, else what is lacking."""
    return [
        _headline(finding, [row for row in report["rows"] if row["detector"] == finding["detector"]])
        for finding in report["findings"]
    ]


def interval_lines(rows: Sequence[Mapping[str, Any]]) -> list[str]:
    """Why rows have no intervals, for those that have a number."""
    scored = [row for row in rows if row["hpt_1"] is not None]
    reasons = {row["no_interval"] for row in scored}
    if len(reasons) == 1 and None not in reasons:
        return [f"Each chatbot: {reasons.pop()}."]
    lacking: dict[tuple[str, str], list[str]] = {}
    for row in scored:
        if row["no_interval"] is not None:
            lacking.setdefault((row["detector"], row["no_interval"]), []).append(row["chatbot"])
    return [
        f"{detector}, {', '.join(chatbots)}: {reason}." for (detector, reason), chatbots in lacking.items()
    ]


def _headline(finding: Mapping[str, Any], rows: Sequence[Mapping[str, Any]]) -> str:
    by = f"By {finding['detector']}"
    if finding["compared"] == 0:
        return f"{by}: nothing was scored."
    if len(rows) == 1:
        return f"{by}, {rows[0]['chatbot']} hallucinates {_rate(rows[0])}; there is no other to compare with."
    if finding["best"] is not None:
        best = next(row for row in rows if row["chatbot"] == finding["best"])
        return (
            f"{by}, {best['chatbot']}{mark(best)} hallucinates least: {_rate(best)}, which the paired test "
            "tells from every other chatbot (p < 0.05 after Holm's correction)."
        )
    sentences = [f"{by}, these conversations do not tell which chatbot hallucinates least."]
    if finding["not_scored"]:
        sentences.append(f"Nothing was scored of {', '.join(finding['not_scored'])}.")
    if finding["undecided"]:
        sentences.append(_needed(finding, len(rows)))
    return " ".join(sentences)


def _needed(finding: Mapping[str, Any], chatbots: int) -> str:
    """How many conversations would tell the two that the test cannot tell apart."""
    two = " and ".join(finding["undecided"])
    if finding["conversations_needed"] is None:
        return (
            f"How many would cannot be estimated from {two}, which have the fewest: "
            f"{finding['not_estimated']}. With {chatbots} chatbots the test needs "
            f"{finding['least_conversations']} of each at the least."
        )
    return (
        f"{two}, which have the fewest, differ by {finding['difference']:.2f} per turn in "
        f"{counted(finding['pairs'], 'conversation')}: about {finding['conversations_needed']:,} of each "
        "chatbot would be needed to tell them apart (80% power)."
    )


def _rate(row: Mapping[str, Any]) -> str:
    return f"{with_interval(row['hpt_1'], row['hpt_1_ci95'], 2)} per turn"
