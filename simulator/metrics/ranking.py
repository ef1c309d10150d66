"""The sentences on the chatbot that hallucinates least, and the tables of every two compared."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from hallulab.scenarios.text.wording import format_count, format_number, format_with_interval, join_names
from hallulab.simulator.metrics.comparisons import compare
from hallulab.simulator.metrics.decision import DecisionSection
from hallulab.simulator.metrics.failures import MUCH, Failure, RunFailures
from hallulab.simulator.metrics.findings import ComparisonSection, Finding, build_findings
from hallulab.simulator.metrics.hallucinations import Row
from hallulab.simulator.metrics.metric import Metric, Tallied
from hallulab.simulator.metrics.results import mark
from hallulab.simulator.metrics.run_report import RunReport
from hallulab.simulator.show.columns import PERCENT, TWO_DECIMALS, Column, build_decimal_format, format_p
from hallulab.simulator.show.document import GroupedTable, Heading, Paragraph, Part, Section

_FLOOR = (
    "difference between halves of one chatbot's conversations that differ in seeds only, mean of both "
    "chatbots"
)
_SEEDS = (
    "share of the variance of Δ HPT-1 that more seeds of the same personas can remove; the rest takes more "
    "personas"
)
COLUMNS = (
    Column("a", "a", "a chatbot", kind="name"),
    Column("b", "b", "another one", kind="name"),
    Column("Personas", "hpt_1.pairs", "personas of both, with the same seeds"),
    Column("Δ HPT-1", "hpt_1.difference", "HPT-1 of a minus that of b", TWO_DECIMALS, beside="hpt_1.ci95"),
    Column("p (Holm)", "hpt_1.p_holm", "paired test of HPT-1, adjusted by Holm", format_p),
    Column("Noise floor", "hpt_1.floor", _FLOOR, TWO_DECIMALS),
    Column("By seeds %", "hpt_1.seed_share", _SEEDS, PERCENT),
    Column("Δ TokAcc-1, points", "tokacc_1.difference", "TokAcc-1 of a minus that of b",
           build_decimal_format(1, 100), beside="tokacc_1.ci95"),
    Column("p (Holm)", "tokacc_1.p_holm", "paired test of TokAcc-1, adjusted by Holm", format_p),
    Column("Noise floor, points", "tokacc_1.floor", _FLOOR, build_decimal_format(1, 100)),
    Column("Δ Answered, points", "answered.difference",
           "share of answered replies of a minus that of b, scored or not", build_decimal_format(1, 100),
           beside="answered.ci95"),
    Column("p (Holm)", "answered.p_holm", "paired test of this share, adjusted by Holm", format_p),
)  # fmt: skip


class Comparisons(Metric):
    """Compares chatbots on the same personas and seeds, and ranks those that answer as much."""

    SECTION = ComparisonSection
    TABLES = (("Comparisons", COLUMNS),)
    ORDER, TERMINAL_ORDER = 60, 15

    def result(self, tallied: Tallied) -> ComparisonSection:
        """Compare every two chatbots, and find the best."""
        comparisons = compare(tallied.sums, self.run.chatbots, self.run.detectors)
        findings = build_findings(tallied.sums, tallied.rows, comparisons, self.run.margin)
        return ComparisonSection(findings=findings, comparisons=comparisons)

    @classmethod
    def headlines(cls, report: RunReport) -> Sequence[str]:
        """Say which chatbot hallucinates least, or how many personas a decision needs."""
        findings = _list_findings(report)
        ranked = [
            _render_headline(finding, report.by(finding.detector), report.of(RunFailures).failures)
            for finding in findings
            if not finding.undecided
        ]
        aside = [
            _describe_set_aside(finding, report.by(finding.detector))
            for finding in findings
            if finding.set_aside and (not finding.undecided or (finding.pairs or 0) >= finding.least_personas)
        ]
        return [*ranked, *_describe_undecided(report, findings), *aside]

    @classmethod
    def lines(cls, report: RunReport) -> Sequence[str]:
        """Say what the number of personas rests on, and why there are no intervals."""
        return [*describe_planning(report), *explain_intervals(report)]

    @classmethod
    def section(cls, report: RunReport) -> Section | None:
        """Show each detector's comparisons by all metrics; nothing of one chatbot."""
        lines = report.of(ComparisonSection).comparisons
        if not lines:
            return None
        hint = (
            "Differences a − b on the same personas and seeds; paired test over personas, p "
            "adjusted by Holm over the pairs of one detector and metric. * below 0.05."
        )
        if any(line.no_interval for line in lines):
            hint += f" {report.intervals.hint}"
        parts: list[Part] = [Paragraph(hint), *map(Paragraph, describe_planning(report))]
        for name in report.detectors:
            own = dict[tuple[str, str], dict[str, Any]]()
            for line in lines:
                if line.detector == name:
                    own.setdefault((line.a, line.b), {"a": line.a, "b": line.b})[line.metric] = line
            parts += [Heading(name), GroupedTable(COLUMNS, [list(own.values())])]
        return Section("comparisons", "Comparisons", parts, "Comparisons")


def _describe_undecided(report: RunReport, findings: Sequence[Finding]) -> Iterator[str]:
    """Say that the replies do not rank the chatbots, and how many personas that needs."""
    open_ones, several = [finding for finding in findings if finding.undecided], len(findings) > 1
    if not open_ones:
        return
    personas = max(finding.pairs or 0 for finding in open_ones)
    is_part = len(open_ones) < len(findings)
    by = f" by {join_names([finding.detector for finding in open_ones])}" if is_part else ""
    needed = _join_needed(open_ones, several=several)
    least = max(finding.least_personas for finding in open_ones)
    more = needed or f"a test of {len(report.chatbots)} chatbots needs at least {least}"
    scored = [row.personas for row in report.rows if row.hpt_1 is not None]
    shared = "shared " if personas < min(scored, default=0) else ""
    if personas < report.intervals.least:
        yield (
            f"Too few {shared}personas ({personas}) to rank the chatbots{by}. Intervals need "
            f"{report.intervals.least}; {more}."
        )
    elif personas < least or needed:
        yield f"No chatbot hallucinates significantly least{by} with {personas} {shared}personas; {more}."
    else:
        reasons = "; ".join(
            f"the number for {_name_pair(one)}{f' by {one.detector}' if several else ''} is not planned: "
            f"{one.not_planned}"
            for one in open_ones
        )
        yield f"No chatbot hallucinates significantly least{by} with {personas} {shared}personas; {reasons}."
    unscored = dict.fromkeys(name for finding in open_ones for name in finding.not_scored)
    if unscored:
        yield f"Not scored: {join_names([*unscored])}."


def _join_needed(open_ones: Sequence[Finding], *, several: bool) -> str:
    """Say how many personas tell each undecided pair apart; empty where nothing is planned."""
    needed: dict[str, list[str]] = {}
    for finding in open_ones:
        if finding.personas_needed is not None:
            by = f" by {finding.detector}" if several else ""
            needed.setdefault(_name_pair(finding), []).append(f"{finding.personas_needed:,}{by}")
    margin = open_ones[0].margin
    return "; ".join(
        f"telling {pair} apart, if they differ by {margin:g} per turn, needs about {join_names(counts)}"
        for pair, counts in needed.items()
    )


def _name_pair(finding: Finding) -> str:
    return " and ".join(finding.undecided)


def describe_planning(report: RunReport) -> list[str]:
    """Explain for each detector the number of personas in the headline."""
    return [_describe_needed(finding) for finding in _list_findings(report) if finding.undecided]


def _list_findings(report: RunReport) -> list[Finding]:
    """Return the findings without that of the detector by which a run was decided: its decision is shown."""
    decision = report.of(DecisionSection).decision
    decided = None if decision is None else decision.detector
    return [one for one in report.of(ComparisonSection).findings if one.detector != decided]


def explain_intervals(report: RunReport) -> list[str]:
    """Explain why rows with a number have no interval; nothing where too few personas are the headline."""
    scored = [row for row in report.rows if row.hpt_1 is not None]
    reasons = {row.no_interval for row in scored}
    if len(reasons) == 1 and None not in reasons:
        few = all(row.personas < report.intervals.least for row in scored)
        if few and any(finding.undecided for finding in _list_findings(report)):
            return []
        if {row.chatbot for row in scored} == {row.chatbot for row in report.rows}:
            return [f"Each chatbot: {reasons.pop()}."]
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
        if any(row.not_localised for row in rows):
            return f"{by}: no hallucinations are counted, because it does not say where in a reply they are."
        return f"{by}: nothing was scored."
    if len(rows) == 1:
        rate = f"{_rate(rows[0])}{_add_lacking(rows[0], failures)}"
        return f"{by}, {rows[0].chatbot} hallucinates {rate}; there is no other to compare with."
    if finding.best is not None:
        best = next(row for row in rows if row.chatbot == finding.best)
        ranked = [row for row in rows if row.chatbot not in finding.set_aside]
        of = f" of {len(ranked)} ranked chatbots" if finding.set_aside else ""
        return (
            f"{by}, {best.chatbot}{mark(best)} hallucinates least{of}: {_rate(best)}"
            f"{_add_lacking(best, failures)}, significantly less than every other{of and ' of these'} "
            f"{'' if of else 'chatbot '}(paired test, p < 0.05 after Holm's correction); "
            f"{_compare_answered(best, ranked)}."
        )
    if finding.set_aside and finding.compared == len(finding.set_aside) + 1:
        only = next(row for row in rows if row.hpt_1 is not None and row.chatbot not in finding.set_aside)
        return f"{by}, only {only.chatbot} is ranked: {_rate(only)}."
    unscored = f" Not scored: {join_names(finding.not_scored)}." if finding.not_scored else ""
    return f"{by}, no chatbot hallucinates significantly least.{unscored}"


def _compare_answered(best: Row, ranked: Sequence[Row]) -> str:
    """Say how much the best chatbot answers beside the others."""
    others = [row.answered for row in ranked if row is not best and row.answered is not None]
    if best.answered is None or not others:
        return "how much they answer is not known"
    ends = " to ".join(dict.fromkeys(map(_share, (min(others), max(others)))))
    who = "others" if len(ranked) > 2 else "other"
    return f"it answers {_share(best.answered)} of replies, the {who} {ends}"


def _describe_set_aside(finding: Finding, rows: Sequence[Row]) -> str:
    """Say which chatbots have no more hallucinations than the others, but answer less."""
    named = {row.chatbot: row for row in rows}
    aside = [named.pop(name) for name in finding.set_aside]
    most = max(named.values(), key=lambda row: row.answered or 0.0)
    rates = join_names([format_number(row.hpt_1, 2) for row in aside])
    shares = join_names([_share(row.answered) for row in aside])
    s, it_is = ("s", "It is") if len(aside) == 1 else ("", "They are")
    return (
        f"By {finding.detector}, {join_names(finding.set_aside)} hallucinate{s} only {rates} per turn, but "
        f"answer{s} {shares} of replies against {_share(most.answered)} of {most.chatbot}. {it_is} not "
        "ranked: a chatbot that answers less is not better by that alone."
    )


def _share(share: float | None) -> str:
    return "an unknown share" if share is None else f"{share:.1%}"


def _add_lacking(row: Row, failures: Sequence[Failure]) -> str:
    """Say behind a chatbot's number how much of its talk is not in it, where it is much."""
    lacking = [
        f"{one.failed} of its {format_count(one.conversations, 'conversation')} failed"
        for one in failures
        if one.chatbot == row.chatbot and one.failed > MUCH * one.conversations
    ]
    unscored = row.turns - row.scored_turns
    if unscored > MUCH * row.turns:
        lacking.append(f"{unscored} of its {row.turns} replies are not scored")
    return f" (and {' and '.join(lacking)})" if lacking else ""


def _describe_needed(finding: Finding) -> str:
    """Name the lowest and the nearest chatbots, and the personas and seeds that tell them apart."""
    has = "has" if len(finding.lowest) == 1 else "have"
    of = f" of those ranked (without {join_names(finding.set_aside)})" if finding.set_aside else ""
    if len(finding.lowest) == finding.compared - len(finding.set_aside):
        aside = f" ({join_names(finding.set_aside)} not ranked)" if finding.set_aside else ""
        fewest = f"{finding.detector}: {join_names(finding.lowest)} have equally many{aside} in this run"
    else:
        fewest = f"{finding.detector}: {join_names(finding.lowest)} {has} the fewest{of} in this run"
    if finding.nearest:
        fewest += f"; not significantly fewer than {join_names(finding.nearest)}"
    pair = _name_pair(finding)
    if finding.personas_needed is None:
        return f"{fewest}. The personas that tell {pair} apart are not planned: {finding.not_planned}."
    seeds = ""
    if finding.seed_share is not None:
        seeds = (
            f" More seeds of the same personas can remove {finding.seed_share:.0%} of this difference's "
            "variance at most; the rest takes more personas."
        )
    return (
        f"{fewest}. {pair} differ by {format_number(finding.difference, 2)} per turn with "
        f"{format_count(finding.pairs or 0, 'persona')}; telling two apart that differ by {finding.margin:g} "
        f"needs about {finding.personas_needed:,} (80% power for this pair alone).{seeds}"
    )


def _rate(row: Row) -> str:
    return f"{format_with_interval(row.hpt_1, row.hpt_1_ci95, 2)} per turn"
