"""Free-running and fixed-prefix conversations side by side, and what remains of the chatbots' differences."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence

from hallulab.scenarios.text.wording import format_number, format_with_interval, join_names, shorten_line
from hallulab.scenarios.transcript import Conversation, Frozen
from hallulab.simulator.metrics.hallucinations import ByDetector
from hallulab.simulator.metrics.metric import CsvTable, Flaws, Metric, RunFacts, Tallied
from hallulab.simulator.metrics.run_report import RunReport
from hallulab.simulator.metrics.side_by_side import FixedPrefix, Places, collect_places, compare_side_by_side
from hallulab.simulator.show.columns import (
    CHATBOT,
    DETECTOR,
    PERCENT,
    TWO_DECIMALS,
    Column,
    format_p,
    group_rows,
)
from hallulab.simulator.show.document import GroupedTable, Heading, Paragraph, Part, Section

SIDES = (
    CHATBOT,
    DETECTOR,
    Column("Replies", "replies", "turns scored in both runs, the basis of the numbers", short="Replies"),
    Column("of", "branched", "all turns at which the chatbot was given a history", short="of"),
    Column("HPT-1 free-running", "free_hpt_1", "hallucinations over these turns, after its own history",
           TWO_DECIMALS, beside="free_hpt_1_ci95", short="HPT-1\nfree-running"),
    Column("HPT-1 fixed-prefix", "fixed_hpt_1", "the same after the given history", TWO_DECIMALS,
           beside="fixed_hpt_1_ci95", short="HPT-1\nfixed-prefix"),
    Column("Path", "path", "free-running minus fixed-prefix: what the chatbot's own histories add",
           TWO_DECIMALS, beside="path_ci95", short="Path"),
)  # fmt: skip
REMAINING = (
    Column("a", "a", "the chatbot whose conversations are branched off from", kind="name"),
    Column("b", "b", "another one", kind="name"),
    Column("Replies", "replies", "turns of both chatbots scored in both runs"),
    Column("Δ HPT-1 free-running", "free_difference", "HPT-1 of a minus that of b, free-running",
           TWO_DECIMALS, beside="free_ci95"),
    Column("p (Holm)", "free_p_holm", "paired test of it, adjusted by Holm", format_p),
    Column("Δ HPT-1 fixed-prefix", "fixed_difference", "the same after the given histories",
           TWO_DECIMALS,
           beside="fixed_ci95"),
    Column("p (Holm)", "fixed_p_holm", "paired test of it, adjusted by Holm", format_p),
    Column("Remains %", "remaining",
           "fixed-prefix difference over the free-running one, if that is significant", PERCENT,
           beside="remaining_ci95"),
    Column("Path", "path", "free-running minus fixed-prefix difference: what the histories explain",
           TWO_DECIMALS, beside="path_ci95"),
)  # fmt: skip


class FixedPrefixSection(Frozen):
    """Fields of `report.json`."""

    fixed_prefix: FixedPrefix | None = None
    """Where conversations branch off from another run: both runs side by side. None: they do not."""


class FixedPrefixes(Metric):
    """Sets branched conversations beside those that they branch off from."""

    SECTION = FixedPrefixSection
    TABLES = (
        ("Free-running and fixed-prefix", SIDES),
        ("Differences that remain with fixed prefixes", REMAINING),
    )
    ORDER = TERMINAL_ORDER = 40
    COUNTS = ("_given",)

    def __init__(self, run: RunFacts) -> None:
        super().__init__(run)
        self._given: dict[str, Places] = defaultdict(Places)

    def add(self, conversation: Conversation, verdicts: ByDetector, flaws: Flaws) -> None:
        """Keep a branched conversation's places."""
        if self.run.branched_from is not None:
            self._given[conversation.chatbot].add(conversation, verdicts, self.run.detectors)

    def result(self, tallied: Tallied) -> FixedPrefixSection:
        """Return both runs side by side.

        Raises:
            UsageError: a place occurs twice.
        """
        run = self.run
        if run.branched_from is None:
            return FixedPrefixSection()
        ran = collect_places(run.free, run.detectors)
        found = compare_side_by_side(run.branched_from, ran, self._given, run.chatbots, run.detectors)
        return FixedPrefixSection(fixed_prefix=found)

    @classmethod
    def lines(cls, report: RunReport) -> Sequence[str]:
        """Say how much of the differences remains."""
        return describe_fixed_prefix(report)

    @classmethod
    def section(cls, report: RunReport) -> Section | None:
        """Show chatbots side by side, then what remains of their differences; nothing of other runs."""
        found = report.of(FixedPrefixSection).fixed_prefix
        if found is None:
            return None
        hint = (
            "Turns with the same persona, seed and number of exchanges before, scored in both runs. "
            "Intervals are over personas, with all conversations with them."
        )
        parts: list[Part] = [
            *map(Paragraph, describe_fixed_prefix(report)),
            GroupedTable(SIDES, group_rows(found.rows, "detector", report.detectors)),
            Paragraph(hint),
        ]
        for name in report.detectors:
            lines = [line for line in found.comparisons if line.detector == name]
            parts += [Heading(name), GroupedTable(REMAINING, [lines])]
        return Section("fixed-prefix", "Free-running and fixed-prefix", parts, "Fixed prefixes")

    @classmethod
    def tables(cls, report: RunReport) -> Sequence[Part]:
        """Return chatbots side by side; nothing of other runs."""
        found = report.of(FixedPrefixSection).fixed_prefix
        if found is None:
            return ()
        groups = group_rows(found.rows, "detector", report.detectors)
        return (GroupedTable(SIDES, groups, by="detector"),)

    @classmethod
    def beside(cls, report: RunReport) -> CsvTable | None:
        """Return the columns of both ways; nothing of other runs."""
        found = report.of(FixedPrefixSection).fixed_prefix
        return None if found is None else CsvTable(SIDES, found.rows)


def describe_fixed_prefix(report: RunReport) -> list[str]:
    """Say how much of the differences between chatbots remains with fixed prefixes; nothing of other runs."""
    found = report.of(FixedPrefixSection).fixed_prefix
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
            f"{shorten_line(', '.join(changed))}: changed since the free-running conversations ran, so the "
            "two runs do not differ in the history alone."
        )
    return lines


def _describe_detector(detector: str, found: FixedPrefix) -> list[str]:
    lines, alike = [], []
    for line in found.comparisons:
        if line.detector != detector or not line.replies:
            continue
        path = format_with_interval(line.path, line.path_ci95, 2)
        if line.remaining is None:
            alike.append(f"{line.b} (difference {format_number(line.free_difference, 2)}, path {path})")
            continue
        lines.append(
            f"By {detector}, {line.a} and {line.b} differ by {line.free_difference:.2f} per turn when they "
            f"run freely (p = {line.free_p_holm:.2g}, Holm) and by {line.fixed_difference:.2f} with the same "
            f"histories. The histories explain {path}; of the difference, in percent, "
            f"{format_with_interval(line.remaining, line.remaining_ci95, 0, 100)} remain."
        )
    if alike:
        lines.append(
            f"By {detector}, free-running, {found.branched_from.chatbot} does not differ significantly from "
            f"{join_names(alike)}, so no share of a difference is given."
        )
    rows = [row for row in found.rows if row.detector == detector]
    unjudged = [row.chatbot for row in rows if row.free and not row.replies]
    if unjudged:
        lines.append(
            f"{detector}: no turn of {shorten_line(', '.join(unjudged))} was scored in both runs. If it did "
            f"not judge {found.branched_from.run}: `hallulab detect` there, and then `hallulab branch` again."
        )
    return lines
