"""Which chatbot hallucinates least, every two of them compared, and how many personas would tell."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Self

from hallulab.scenarios.text.wording import format_count, format_number, format_with_interval, join_names
from hallulab.scenarios.transcript import Frozen
from hallulab.simulator.metrics.comparison import Comparison, Finding, build_findings, compare
from hallulab.simulator.metrics.decision import DecisionSection
from hallulab.simulator.metrics.failures_counts import MUCH, Failure, RunFailures
from hallulab.simulator.metrics.hallucinations import Row
from hallulab.simulator.metrics.metric import Metric, Tallied
from hallulab.simulator.metrics.run_report import RunReport
from hallulab.simulator.metrics.self_judging import mark
from hallulab.simulator.show.columns import (
    PERCENT,
    TWO_DECIMALS,
    Column,
    build_decimal_format,
    format_p,
)
from hallulab.simulator.show.document import GroupedTable, Heading, Paragraph, Part, Section

_FLOOR = (
    "how far two halves of one chatbot's conversations differ that have the same personas and other seeds, "
    "the mean of both chatbots; none where a persona has one seed"
)
_SEEDS = (
    "share of the variance of Δ HPT-1 that more seeds of the same personas can remove at most; the rest "
    "takes more personas; none where each persona has one seed"
)
COLUMNS = (
    Column("a", "a", "a chatbot", kind="name"),
    Column("b", "b", "another one", kind="name"),
    Column("Personas", "hpt_1.pairs", "personas that both have talked to with the same seeds"),
    Column("Δ HPT-1", "hpt_1.difference", "HPT-1 of a minus that of b, with these personas and seeds",
           TWO_DECIMALS, beside="hpt_1.ci95"),
    Column("p (Holm)", "hpt_1.p_holm", "paired permutation test of HPT-1, adjusted by Holm", format_p),
    Column("Noise floor", "hpt_1.floor", _FLOOR, TWO_DECIMALS),
    Column("By seeds %", "hpt_1.seed_share", _SEEDS, PERCENT),
    Column("Δ TokAcc-1, points", "tokacc_1.difference", "TokAcc-1 of a minus that of b, with these",
           build_decimal_format(1, 100), beside="tokacc_1.ci95"),
    Column("p (Holm)", "tokacc_1.p_holm", "paired permutation test of TokAcc-1, adjusted by Holm", format_p),
    Column("Noise floor, points", "tokacc_1.floor", _FLOOR, build_decimal_format(1, 100)),
)  # fmt: skip


class ComparisonSection(Frozen):
    """Fields of `report.json`."""

    findings: tuple[Finding, ...]
    """Which chatbot hallucinates least, by detector."""
    comparisons: tuple[Comparison, ...]
    """Every two chatbots under each detector."""


class Comparisons(Metric):
    """Compares chatbots on the same personas and seeds."""

    SECTION = ComparisonSection
    TABLES = (("Comparisons", COLUMNS),)
    ORDER, TERMINAL_ORDER = 60, 15

    def merge(self, other: Self) -> None:
        """Add nothing: it is computed from what every report counts."""

    def result(self, tallied: Tallied) -> ComparisonSection:
        """Compare every two chatbots, and find the best."""
        comparisons = compare(tallied.sums, self.run.chatbots, self.run.detectors)
        findings = build_findings(tallied.sums, tallied.rows, comparisons)
        return ComparisonSection(findings=findings, comparisons=comparisons)

    @classmethod
    def headlines(cls, report: RunReport) -> Sequence[str]:
        """Say whether the replies rank the chatbots."""
        return _describe_ranking(report)

    @classmethod
    def lines(cls, report: RunReport) -> Sequence[str]:
        """Say what the number of personas rests on, and why there are no intervals."""
        return [*describe_planning(report), *explain_intervals(report)]

    @classmethod
    def section(cls, report: RunReport) -> Section:
        """Show each detector's comparisons by both metrics."""
        hint = (
            "Differences a − b on the same personas and seeds; paired permutation test over personas, p "
            "adjusted by Holm over the pairs of one detector and metric. * below 0.05."
        )
        lines = report.of(ComparisonSection).comparisons
        if any(line.no_interval for line in lines):
            hint += f" {report.intervals.hint}"
        parts: list[Part] = [
            Paragraph(hint),
            *map(Paragraph, describe_planning(report)),
        ]
        for name in report.detectors:
            own = _join_metrics([line for line in lines if line.detector == name])
            parts += [Heading(name), GroupedTable(COLUMNS, [own])]
        return Section("comparisons", "Comparisons", parts, "Comparisons")


def _join_metrics(lines: Sequence[Comparison]) -> list[dict[str, Any]]:
    """Join the comparisons of both metrics for every two chatbots."""
    found: dict[tuple[str, str], dict[str, Any]] = {}
    for line in lines:
        found.setdefault((line.a, line.b), {"a": line.a, "b": line.b})[line.metric] = line
    return list(found.values())


def _describe_ranking(report: RunReport) -> list[str]:
    """Say which chatbot hallucinates least, or in one sentence how many personas would tell."""
    findings = _list_told(report)
    open_ones = [finding for finding in findings if finding.undecided]
    said = [
        _render_headline(finding, report.by(finding.detector), report.of(RunFailures).failures)
        for finding in findings
        if not finding.undecided
    ]
    if not open_ones:
        return said
    personas = max(finding.pairs or 0 for finding in open_ones)
    by = f" by {join_names([finding.detector for finding in open_ones])}" if said else ""
    needed = _join_needed(open_ones, several=len(findings) > 1)
    least = max(finding.least_personas for finding in open_ones)
    more = needed or f"at least {least} for a test of {len(report.chatbots)} chatbots"
    have = format_count(personas, "persona")
    if personas < report.intervals.least:
        are = "is" if personas == 1 else "are"
        sentence = (
            f"{have} {are} too few to rank the chatbots{by}: {report.intervals.least} are needed for an "
            f"interval, {more}."
        )
    else:
        is_enough = personas >= least and not needed
        why = _join_reasons(open_ones, several=len(findings) > 1) if is_enough else f"needed are {more}"
        sentence = f"{have} do not tell which chatbot hallucinates least{by}; {why}."
    unscored = list(dict.fromkeys(name for finding in open_ones for name in finding.not_scored))
    return [*said, sentence, *([f"Nothing was scored of {join_names(unscored)}."] if unscored else [])]


def _join_needed(open_ones: Sequence[Finding], *, several: bool) -> str:
    """Say how many personas would tell each undecided two apart; empty where nothing is estimated.

    Args:
        open_ones: findings with an undecided two.
        several: whether more than one detector is told of.
    """
    needed: dict[str, list[str]] = {}
    for finding in open_ones:
        if finding.personas_needed is not None:
            by = f" by {finding.detector}" if several else ""
            needed.setdefault(_name_pair(finding), []).append(f"{finding.personas_needed:,}{by}")
    estimates = [f"{join_names(counts)} to tell {pair}" for pair, counts in needed.items()]
    return f"at least about {join_names(estimates)}" if estimates else ""


def _join_reasons(open_ones: Sequence[Finding], *, several: bool) -> str:
    """Say why no number of personas is estimated; arguments as of `_join_needed`."""
    return "; ".join(
        f"how many would tell {_name_pair(finding)}{f' by {finding.detector}' if several else ''} is not "
        f"estimated: {finding.not_estimated}"
        for finding in open_ones
    )


def _name_pair(finding: Finding) -> str:
    return " from ".join(finding.undecided)


def describe_planning(report: RunReport) -> list[str]:
    """Say of each detector what the number of personas in the headline rests on."""
    return [_describe_needed(finding) for finding in _list_told(report) if finding.undecided]


def _list_told(report: RunReport) -> list[Finding]:
    """Return the findings that are told: without that by which a run was decided, whose decision is told."""
    decision = report.of(DecisionSection).decision
    decided = None if decision is None else decision.detector
    return [one for one in report.of(ComparisonSection).findings if one.detector != decided]


def explain_intervals(report: RunReport) -> list[str]:
    """Explain why rows with a number have no interval; nothing where too few personas are the headline."""
    scored = [row for row in report.rows if row.hpt_1 is not None]
    reasons = {row.no_interval for row in scored}
    if len(reasons) == 1 and None not in reasons:
        few = all(row.personas < report.intervals.least for row in scored)
        said = few and any(finding.undecided for finding in _list_told(report))
        return [] if said else [f"Each chatbot: {reasons.pop()}."]
    lacking: dict[tuple[str, str], list[str]] = {}
    for row in scored:
        if row.no_interval is not None:
            lacking.setdefault((row.detector, row.no_interval), []).append(row.chatbot)
    return [
        f"{detector}, {', '.join(chatbots)}: {reason}." for (detector, reason), chatbots in lacking.items()
    ]


def _render_headline(finding: Finding, rows: Sequence[Row], failures: Sequence[Failure]) -> str:
    by = f"By {finding.detector}"
    if finding.compared == 0:
        return f"{by}: nothing was scored."
    if len(rows) == 1:
        rate = f"{_rate(rows[0])}{_add_failures(rows[0], failures)}"
        return f"{by}, {rows[0].chatbot} hallucinates {rate}; there is no other to compare with."
    if finding.best is not None:
        best = next(row for row in rows if row.chatbot == finding.best)
        return (
            f"{by}, {best.chatbot}{mark(best)} hallucinates least: {_rate(best)}"
            f"{_add_failures(best, failures)}, which the paired test tells from every other chatbot "
            "(p < 0.05 after Holm's correction)."
        )
    unscored = f" Nothing was scored of {join_names(finding.not_scored)}." if finding.not_scored else ""
    return f"{by}, nothing tells which chatbot hallucinates least.{unscored}"


def _add_failures(row: Row, failures: Sequence[Failure]) -> str:
    """Say behind a chatbot's number how many of its conversations failed, where it is much."""
    return "".join(
        f" (and {one.failed} of its {format_count(one.conversations, 'conversation')} failed)"
        for one in failures
        if one.chatbot == row.chatbot and one.failed > MUCH * one.conversations
    )


def _describe_needed(finding: Finding) -> str:
    """Say who has the fewest, how many personas would tell the undecided two apart, and what seeds can do."""
    has = "has" if len(finding.lowest) == 1 else "have"
    fewest = f"{finding.detector}: {join_names(finding.lowest)} {has} the fewest"
    if finding.nearest:
        are = "is" if len(finding.nearest) == 1 else "are"
        fewest += (
            f"; of those that the test does not tell from it, {join_names(finding.nearest)} {are} nearest"
        )
    is_pair = len(finding.lowest) + len(finding.nearest) == 2
    if finding.personas_needed is None:
        apart = "them apart" if is_pair else _name_pair(finding)
        return f"{fewest}. How many personas would tell {apart} is not estimated: {finding.not_estimated}."
    seeds = ""
    if finding.seed_share is not None:
        seeds = (
            f" More seeds of the same personas can remove {finding.seed_share:.0%} of this difference's "
            "variance at most; the rest takes more personas."
        )
    two, them = ("They", "them") if is_pair else (join_names(finding.undecided), "these two")
    return (
        f"{fewest}. {two} differ by {format_number(finding.difference, 2)} per turn with "
        f"{format_count(finding.pairs or 0, 'persona')}; at least about {finding.personas_needed:,} would "
        f"tell {them} apart (80% power for this pair alone).{seeds}"
    )


def _rate(row: Row) -> str:
    return f"{format_with_interval(row.hpt_1, row.hpt_1_ci95, 2)} per turn"
