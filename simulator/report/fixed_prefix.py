"""Sentences on a run whose conversations branch off from another run (docs/fixed-prefix.md)."""

from __future__ import annotations

from collections.abc import Sequence

from hallulab.scenarios.text.wording import choose_noun, format_number, shorten_line
from hallulab.simulator.measure.fixed_prefix import FixedPrefix, Remaining
from hallulab.simulator.report.document import RunReport


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
