"""The chatbot that hallucinates least, every two compared, and the personas that tell them apart."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from itertools import combinations
from typing import Any

from hallulab.scenarios.text.wording import format_count, format_number, format_with_interval, join_names
from hallulab.scenarios.transcript import Frozen
from hallulab.simulator.metrics.decision import DecisionSection
from hallulab.simulator.metrics.failures import MUCH, Failure, RunFailures
from hallulab.simulator.metrics.hallucinations import Pairing, Row
from hallulab.simulator.metrics.metric import Metric, Tallied
from hallulab.simulator.metrics.results import mark
from hallulab.simulator.metrics.run_report import RunReport
from hallulab.simulator.metrics.run_sums import KINDS, RATES, RateName, RunSums
from hallulab.simulator.show.columns import (
    PERCENT,
    TWO_DECIMALS,
    Column,
    build_decimal_format,
    format_p,
)
from hallulab.simulator.show.document import GroupedTable, Heading, Paragraph, Part, Section
from hallulab.simulator.statistics.differences import ALPHA, adjust_by_holm, compare_all_pairs
from hallulab.simulator.statistics.intervals import Interval, Rounded, explain_no_interval
from hallulab.simulator.statistics.planning import PairsPlan, compute_least_pairs, plan_pairs
from hallulab.simulator.statistics.sequence import MARGIN

HALVES = "halves by repeat: each persona's seeds in turn"
"""Description of `split_by_repeat` for people."""


def split_by_repeat(users: Iterable[Pairing]) -> tuple[frozenset[Pairing], frozenset[Pairing]] | None:
    """Put each persona's seeds in turn into the one and the other half.

    None where there is nobody, or a persona has a single seed.

    >>> one, other = split_by_repeat([("s", "asha", 0), ("s", "asha", 1), ("s", "asha", 2)]) or ((), ())
    >>> sorted(one), sorted(other)
    ([('s', 'asha', 0), ('s', 'asha', 2)], [('s', 'asha', 1)])
    """
    seeds: dict[tuple[str, str], list[Pairing]] = defaultdict(list)
    for user in sorted(set(users)):
        seeds[user[:2]].append(user)
    if not seeds or min(map(len, seeds.values())) < 2:
        return None
    first, second = ({user for own in seeds.values() for user in own[start::2]} for start in (0, 1))
    return frozenset(first), frozenset(second)


class Comparison(Frozen):
    """Two chatbots on the same personas and seeds: a line of `comparisons` in `report.json`."""

    detector: str
    metric: RateName
    a: str
    b: str
    pairs: int
    """Personas that both have talked to with the same seeds; only these conversations enter."""
    difference: Rounded | None
    """Metric of `a` minus metric of `b`, over these."""
    ci95: Interval
    """Over personas; None: see `no_interval`."""
    no_interval: str | None
    """Why there is none."""
    p_value: Rounded | None
    """Paired test, two-sided, by flipped signs of the personas' pseudo-values; None with fewer than two
    personas."""
    seed_share: Rounded | None
    """Share of the variance of the difference that more seeds of the same personas can remove at most
    (`simulator/statistics/sums.py`); the rest takes more personas. None: no persona has two seeds."""
    p_holm: Rounded | None
    """Adjusted by Holm over all pairs of chatbots under this detector and metric."""
    floor: Rounded | None
    """The noise floor: how far halves of one chatbot's conversations differ that have the same personas and
    other seeds (`hallulab.simulator.metrics.comparisons`), the mean of both chatbots. None: a persona has one
    seed."""


def compare(sums: RunSums, chatbots: Sequence[str], detectors: Sequence[str]) -> tuple[Comparison, ...]:
    """Compare every two chatbots by every metric under every detector.

    Raises:
        UsageError: a chatbot has two conversations with the same scenario, persona and seed.
    """
    found: list[Comparison] = []
    names = list(combinations(chatbots, 2))
    for detector in detectors:
        keys = [(metric, *name) for metric in RATES for name in names]
        pairs = [sums.pair(a, b, detector, metric) for metric, a, b in keys]
        tested = compare_all_pairs(
            [(*both.ratios(), KINDS[metric]) for both, (metric, _, _) in zip(pairs, keys, strict=True)]
        )
        for number, metric in enumerate(RATES):
            start = number * len(names)
            differences = tested[start : start + len(names)]
            shares = [both.seed_share() for both in pairs[start : start + len(names)]]
            halves = {name: sums.halves(name, detector).difference(metric) for name in chatbots}
            adjusted = adjust_by_holm([item.p_value for item in differences])
            found.extend(
                Comparison(
                    detector=detector,
                    metric=metric,
                    a=a,
                    b=b,
                    pairs=item.pairs,
                    difference=item.difference,
                    ci95=item.ci95,
                    no_interval=explain_no_interval(item.pairs, found={"difference": item.ci95}),
                    p_value=item.p_value,
                    seed_share=share,
                    p_holm=p_holm,
                    floor=_average(halves[a], halves[b]),
                )
                for (a, b), item, share, p_holm in zip(names, differences, shares, adjusted, strict=True)
            )
    return tuple(found)


def _average(one: float | None, other: float | None) -> float | None:
    return None if one is None or other is None else (one + other) / 2


class Finding(Frozen):
    """One detector's result on all chatbots: an item of `build_findings` in `report.json`."""

    detector: str
    compared: int
    """Chatbots with a scored turn."""
    not_scored: tuple[str, ...]
    """Chatbots without one."""
    best: str | None = None
    """The chatbot whose HPT-1 is below every other one's, each time with p < 0.05 by the paired test after
    Holm; None where there is none, or a chatbot was not scored."""
    lowest: tuple[str, ...] = ()
    """The chatbot with the lowest HPT-1, with those that tie with it and do not differ significantly, in the
    order of the rows. Empty where it differs from all others, and where fewer than two are scored."""
    nearest: tuple[str, ...] = ()
    """Where one alone is lowest: the lowest of those not significantly different, all that tie."""
    undecided: tuple[str, ...] = ()
    """The lowest and one of the nearest, or two of the lowest where several tie, in the order of the rows: of
    all such pairs the one that needs most personas. Empty where there is no such pair."""
    pairs: int | None = None
    """Personas on which these two are compared."""
    difference: float | None = None
    """Difference of their HPT-1 on these pairs."""
    seed_share: Rounded | None = None
    """Share of the variance of this difference that more seeds of the same personas can remove at most."""
    margin: Rounded = MARGIN
    """Difference in HPT-1 that the number of personas is planned for."""
    personas_needed: int | None = None
    """Personas with which one test of these two alone would tell them apart with a chance of 80% if they
    differ by `margin`, with as many seeds each as now: see `plan_pairs`. After Holm's correction for the
    other pairs it takes this many or more. At least `least_personas`."""
    not_planned: str | None = None
    """Why there is no such number."""
    least_personas: int
    """Personas below which no test of so many chatbots can find a difference, whatever their seeds."""


def build_findings(
    sums: RunSums, rows: Sequence[Row], comparisons: Sequence[Comparison]
) -> tuple[Finding, ...]:
    """Make a finding for every detector, in the order of the rows.

    `personas_needed` is planned for the chatbot with the lowest HPT-1 and the nearest one that does not
    differ significantly, since that pair usually needs most.

    Args:
        rows: of these sums.
        comparisons: of these sums.
    """
    return tuple(
        _build_finding(
            detector,
            sums,
            [row for row in rows if row.detector == detector],
            [line for line in comparisons if line.detector == detector and line.metric == "hpt_1"],
        )
        for detector in dict.fromkeys(row.detector for row in rows)
    )


def _build_finding(
    detector: str, sums: RunSums, rows: Sequence[Row], comparisons: Sequence[Comparison]
) -> Finding:
    rates = {row.chatbot: row.hpt_1 for row in rows if row.hpt_1 is not None}
    not_scored = tuple(row.chatbot for row in rows if row.hpt_1 is None)
    least = compute_least_pairs(len(comparisons))
    finding = Finding(detector=detector, compared=len(rates), not_scored=not_scored, least_personas=least)
    if len(rates) < 2:
        return finding
    lowest, *others = sorted(rates, key=lambda name: rates[name])
    undecided = [name for name in others if not _is_below(lowest, name, comparisons)]
    if not undecided:
        return finding if not_scored else finding.model_copy(update={"best": lowest})
    closest = rates[undecided[0]]
    tied = [name for name in undecided if rates[name] == closest]
    pairs = [_plan_pair(lowest, name, detector, sums, comparisons) for name in tied]
    line, plan = max(pairs, key=lambda pair: pair[1].pairs or 0)
    is_tie = closest == rates[lowest]
    return finding.model_copy(
        update={
            "lowest": tuple(name for name in rates if name == lowest or (is_tie and name in tied)),
            "nearest": () if is_tie else tuple(tied),
            "undecided": tuple(name for name in rates if name in (line.a, line.b)),
            "pairs": line.pairs,
            "difference": None if line.difference is None else abs(line.difference),
            "seed_share": line.seed_share,
            "personas_needed": None if plan.pairs is None else max(plan.pairs, least),
            "not_planned": plan.reason,
        }
    )


def _plan_pair(
    one: str, other: str, detector: str, sums: RunSums, comparisons: Sequence[Comparison]
) -> tuple[Comparison, PairsPlan]:
    """Return the comparison of two chatbots, and the pairs that would tell them apart."""
    line = next(item for item in comparisons if {item.a, item.b} == {one, other})
    return line, plan_pairs(*sums.pair(line.a, line.b, detector, "hpt_1").ratios())


def _is_below(lower: str, higher: str, comparisons: Sequence[Comparison]) -> bool:
    """Return whether the test finds the HPT-1 of `lower` below that of `higher`."""
    line = next(item for item in comparisons if {item.a, item.b} == {lower, higher})
    if line.p_holm is None or line.difference is None or line.p_holm >= ALPHA:
        return False
    return line.difference < 0 if line.a == lower else line.difference > 0


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
    Column("p (Holm)", "hpt_1.p_holm", "paired test of HPT-1, adjusted by Holm", format_p),
    Column("Noise floor", "hpt_1.floor", _FLOOR, TWO_DECIMALS),
    Column("By seeds %", "hpt_1.seed_share", _SEEDS, PERCENT),
    Column("Δ TokAcc-1, points", "tokacc_1.difference", "TokAcc-1 of a minus that of b, with these",
           build_decimal_format(1, 100), beside="tokacc_1.ci95"),
    Column("p (Holm)", "tokacc_1.p_holm", "paired test of TokAcc-1, adjusted by Holm", format_p),
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

    def result(self, tallied: Tallied) -> ComparisonSection:
        """Compare every two chatbots, and find the best."""
        comparisons = compare(tallied.sums, self.run.chatbots, self.run.detectors)
        findings = build_findings(tallied.sums, tallied.rows, comparisons)
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
        return [*ranked, *_describe_undecided(report, findings)]

    @classmethod
    def lines(cls, report: RunReport) -> Sequence[str]:
        """Say what the number of personas rests on, and why there are no intervals."""
        return [*describe_planning(report), *explain_intervals(report)]

    @classmethod
    def section(cls, report: RunReport) -> Section:
        """Show each detector's comparisons by both metrics."""
        hint = (
            "Differences a − b on the same personas and seeds; paired test over personas, p "
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
    if personas < report.intervals.least:
        yield (
            f"Too few personas ({personas}) to rank the chatbots{by}. Intervals need "
            f"{report.intervals.least}; {more}."
        )
    elif personas < least or needed:
        yield f"No chatbot hallucinates significantly least{by} with {personas} personas; {more}."
    else:
        reasons = "; ".join(
            f"the number for {_name_pair(one)}{f' by {one.detector}' if several else ''} is not planned: "
            f"{one.not_planned}"
            for one in open_ones
        )
        yield f"No chatbot hallucinates significantly least{by} with {personas} personas; {reasons}."
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
        said = few and any(finding.undecided for finding in _list_findings(report))
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
            f"{_add_failures(best, failures)}, significantly less than every other chatbot (paired test, "
            "p < 0.05 after Holm's correction)."
        )
    unscored = f" Not scored: {join_names(finding.not_scored)}." if finding.not_scored else ""
    return f"{by}, no chatbot hallucinates significantly least.{unscored}"


def _add_failures(row: Row, failures: Sequence[Failure]) -> str:
    """Say behind a chatbot's number how many of its conversations failed, where it is much."""
    return "".join(
        f" (and {one.failed} of its {format_count(one.conversations, 'conversation')} failed)"
        for one in failures
        if one.chatbot == row.chatbot and one.failed > MUCH * one.conversations
    )


def _describe_needed(finding: Finding) -> str:
    """Name the lowest and the nearest chatbots, and the personas and seeds that tell them apart."""
    has = "has" if len(finding.lowest) == 1 else "have"
    fewest = f"{finding.detector}: {join_names(finding.lowest)} {has} the fewest in this run"
    if finding.nearest:
        fewest += f"; not significantly different: {join_names(finding.nearest)}"
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
