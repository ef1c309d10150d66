"""Findings in words: first on the page, and below the table of the terminal."""

from __future__ import annotations

from collections.abc import Sequence

from scenarios.text.wording import counted, number, with_interval
from simulator.measure.finding import Finding
from simulator.measure.metrics import Row
from simulator.report.document import RunReport
from simulator.report.self_judging import mark


def headlines(report: RunReport) -> list[str]:
    """Write a few sentences a detector: the best chatbot, if the test names one, else what is lacking."""
    return [_headline(finding, report.by(finding.detector)) for finding in report.findings]


def interval_lines(rows: Sequence[Row]) -> list[str]:
    """Explain why rows with a number have no interval."""
    scored = [row for row in rows if row.hpt_1 is not None]
    reasons = {row.no_interval for row in scored}
    if len(reasons) == 1 and None not in reasons:
        return [f"Each chatbot: {reasons.pop()}."]
    lacking: dict[tuple[str, str], list[str]] = {}
    for row in scored:
        if row.no_interval is not None:
            lacking.setdefault((row.detector, row.no_interval), []).append(row.chatbot)
    return [
        f"{detector}, {', '.join(chatbots)}: {reason}." for (detector, reason), chatbots in lacking.items()
    ]


def _headline(finding: Finding, rows: Sequence[Row]) -> str:
    by = f"By {finding.detector}"
    if finding.compared == 0:
        return f"{by}: nothing was scored."
    if len(rows) == 1:
        return f"{by}, {rows[0].chatbot} hallucinates {_rate(rows[0])}; there is no other to compare with."
    if finding.best is not None:
        best = next(row for row in rows if row.chatbot == finding.best)
        return (
            f"{by}, {best.chatbot}{mark(best)} hallucinates least: {_rate(best)}, which the paired test "
            "tells from every other chatbot (p < 0.05 after Holm's correction)."
        )
    sentences = [f"{by}, these conversations do not tell which chatbot hallucinates least."]
    if finding.not_scored:
        sentences.append(f"Nothing was scored of {', '.join(finding.not_scored)}.")
    if finding.undecided:
        sentences.append(_needed(finding, len(rows)))
    return " ".join(sentences)


def _needed(finding: Finding, chatbots: int) -> str:
    """Say how many personas would tell the undecided two apart, and whether more seeds would help."""
    two = " and ".join(finding.undecided)
    if finding.personas_needed is None:
        return (
            f"How many personas would cannot be estimated from {two}, which have the fewest: "
            f"{finding.not_estimated}. With {chatbots} chatbots the test needs "
            f"{finding.least_personas} personas at the least."
        )
    seeds = ""
    if finding.seed_share is not None:
        seeds = (
            f" More seeds of the same personas can remove {finding.seed_share:.0%} of this difference's "
            "variance at most; the rest takes more personas."
        )
    return (
        f"{two}, which have the fewest, differ by {number(finding.difference, 2)} per turn with "
        f"{counted(finding.pairs or 0, 'persona')}: about {finding.personas_needed:,} would be needed to "
        f"tell them apart (80% power).{seeds}"
    )


def _rate(row: Row) -> str:
    return f"{with_interval(row.hpt_1, row.hpt_1_ci95, 2)} per turn"
