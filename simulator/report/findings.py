"""Findings in words, first on the page and in the terminal."""

from __future__ import annotations

from collections.abc import Sequence

from hallulab.scenarios.text.wording import (
    choose_noun,
    format_count,
    format_number,
    format_with_interval,
    join_names,
    shorten_line,
)
from hallulab.simulator.measure.agreement import Flagged
from hallulab.simulator.measure.comparison import Finding
from hallulab.simulator.measure.fixed_prefix import FixedPrefix, Remaining
from hallulab.simulator.measure.hallucinations import Row
from hallulab.simulator.report.columns import mark
from hallulab.simulator.report.document import RunReport


def render_headlines(report: RunReport) -> list[str]:
    """Write what was found in the replies, where to look first, then whether that ranks the chatbots."""
    flagged = report.flagged
    if flagged is None:
        return _describe_ranking(report)
    disputed = f"The detectors disagree on {_format_replies(flagged.by_some)}, which the page shows first."
    found = _describe_flagged(flagged, report.detectors)
    return [found, *([disputed] if flagged.by_some else []), *_describe_ranking(report)]


def _describe_flagged(flagged: Flagged, detectors: Sequence[str]) -> str:
    """Say how many replies all detectors flag, whose they are, and what is wrong with one."""
    by = detectors[0] if len(detectors) == 1 else "both detectors" if len(detectors) == 2 else "all detectors"
    replies = _format_replies(flagged.scored)
    left = flagged.replies - flagged.scored
    apart = f"; {left} more {'was' if left == 1 else 'were'} not scored by {by}" if left else ""
    if not flagged.scored:
        return f"None of {_format_replies(flagged.replies)} was scored by {by}."
    if not flagged.by_all:
        return f"None of {replies} is flagged by {by}{apart}."
    often = f", most often those of {join_names(flagged.most_often)}" if flagged.most_often else ""
    if flagged.their_share is not None:
        each = " each" if len(flagged.most_often) > 1 else ""
        often += " ({} of {}{})".format(*flagged.their_share, each)
    example = ""
    if flagged.example is not None:
        one = flagged.example
        example = f' For example, {one.chatbot} says "{shorten_line(one.text)}" {one.reason}'
    are = "is" if flagged.by_all == 1 else "are"
    return f"{flagged.by_all} of {replies} {are} flagged by {by}{often}{apart}.{example}"


def _format_replies(number: int) -> str:
    return f"{number} {choose_noun(number, 'reply', 'replies')}"


def _describe_ranking(report: RunReport) -> list[str]:
    """Say which chatbot hallucinates least, or in one sentence how many personas would tell."""
    open_ones = [finding for finding in report.findings if finding.undecided]
    said = [
        _render_headline(finding, report.by(finding.detector))
        for finding in report.findings
        if not finding.undecided
    ]
    if not open_ones:
        return said
    personas = max(finding.pairs or 0 for finding in open_ones)
    by = f" by {join_names([finding.detector for finding in open_ones])}" if said else ""
    needed: dict[str, list[str]] = {}
    for finding in open_ones:
        if finding.personas_needed is not None:
            count = f"{finding.personas_needed:,}"
            named = count if len(report.findings) == 1 else f"{count} by {finding.detector}"
            needed.setdefault(" from ".join(finding.undecided), []).append(named)
    estimates = [f"{join_names(counts)} to tell {pair}" for pair, counts in needed.items()]
    least = max(finding.least_personas for finding in open_ones)
    chatbots = f"{len(report.chatbots)} chatbots"
    more = f"about {join_names(estimates)}" if estimates else f"at least {least} for a test of {chatbots}"
    have = format_count(personas, "persona")
    if personas < report.intervals.least:
        are = "is" if personas == 1 else "are"
        sentence = (
            f"{have} {are} too few to rank the chatbots{by}: {report.intervals.least} are needed for an "
            f"interval, {more}."
        )
    else:
        sentence = f"{have} do not tell which chatbot hallucinates least{by}; needed are {more}."
    unscored = list(dict.fromkeys(name for finding in open_ones for name in finding.not_scored))
    return [*said, sentence, *([f"Nothing was scored of {join_names(unscored)}."] if unscored else [])]


def describe_planning(report: RunReport) -> list[str]:
    """Say of each detector what the number of personas in the headline rests on."""
    return [_describe_needed(finding) for finding in report.findings if finding.undecided]


def explain_intervals(report: RunReport) -> list[str]:
    """Explain why rows with a number have no interval; nothing where too few personas are the headline."""
    scored = [row for row in report.rows if row.hpt_1 is not None]
    reasons = {row.no_interval for row in scored}
    if len(reasons) == 1 and None not in reasons:
        said = any(finding.undecided for finding in report.findings)
        return [] if said else [f"Each chatbot: {reasons.pop()}."]
    lacking: dict[tuple[str, str], list[str]] = {}
    for row in scored:
        if row.no_interval is not None:
            lacking.setdefault((row.detector, row.no_interval), []).append(row.chatbot)
    return [
        f"{detector}, {', '.join(chatbots)}: {reason}." for (detector, reason), chatbots in lacking.items()
    ]


def _render_headline(finding: Finding, rows: Sequence[Row]) -> str:
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
    unscored = f" Nothing was scored of {join_names(finding.not_scored)}." if finding.not_scored else ""
    return f"{by}, nothing tells which chatbot hallucinates least.{unscored}"


def _describe_needed(finding: Finding) -> str:
    """Say how many personas would tell the undecided two apart, and whether more seeds would help."""
    two = " and ".join(finding.undecided)
    if finding.personas_needed is None:
        return (
            f"{finding.detector}: {two} have the fewest. How many personas would tell them apart is not "
            f"estimated: {finding.not_estimated}."
        )
    seeds = ""
    if finding.seed_share is not None:
        seeds = (
            f" More seeds of the same personas can remove {finding.seed_share:.0%} of this difference's "
            "variance at most; the rest takes more personas."
        )
    return (
        f"{finding.detector}: {two} have the fewest. They differ by "
        f"{format_number(finding.difference, 2)} per turn "
        f"with {format_count(finding.pairs or 0, 'persona')}; about {finding.personas_needed:,} would "
        "tell them "
        f"apart (80% power).{seeds}"
    )


def _rate(row: Row) -> str:
    return f"{format_with_interval(row.hpt_1, row.hpt_1_ci95, 2)} per turn"


def describe_fixed_prefix(report: RunReport) -> list[str]:
    """Say how much of the differences between chatbots remains with fixed prefixes; nothing of other runs."""
    found = report.fixed_prefix
    if found is None:
        return []
    lines = [
        "Fixed prefixes: all chatbots answer the same messages after the same histories, those of "
        f"{found.branched_from.chatbot} in {found.branched_from.run}."
    ]
    for detector in report.detectors:
        lines += _describe_detector(detector, found)
    changed = list(dict.fromkeys(row.chatbot for row in found.rows if row.changed))
    if changed:
        lines.append(
            f"{shorten_line(', '.join(changed))}: changed since the free-running conversations were held, "
            "so the "
            "two runs do not differ in the history alone."
        )
    return lines


def _describe_detector(detector: str, found: FixedPrefix) -> list[str]:
    lines = []
    widest = _find_widest([line for line in found.comparisons if line.detector == detector])
    if widest is not None:
        replies = f"{widest.replies} {choose_noun(widest.replies, 'reply', 'replies')}"
        remains = f"{format_number(widest.remaining, 0, 100)}% of it remains"
        lines.append(
            f"By {detector}, {widest.a} and {widest.b} differ most when they run freely: by "
            f"{format_number(widest.free_difference, 2)} per turn over {replies}. With the same histories "
            "they "
            f"differ by {format_number(widest.fixed_difference, 2)}: {remains}."
        )
    rows = [row for row in found.rows if row.detector == detector]
    unjudged = [row.chatbot for row in rows if row.free and not row.replies]
    if unjudged:
        lines.append(
            f"{detector}: no turn of {shorten_line(', '.join(unjudged))} was scored in both runs. If it "
            "did not "
            f"judge {found.branched_from.run}: `hallulab detect` there, and then `hallulab branch` again."
        )
    return lines


def _find_widest(lines: Sequence[Remaining]) -> Remaining | None:
    """Return the pair of chatbots that differ most free-running; None where no two differ."""
    differing = [line for line in lines if line.remaining is not None]
    return max(differing, key=lambda line: abs(line.free_difference or 0.0), default=None)
