"""Free-running and fixed-prefix conversations side by side, and what remains of the chatbots' differences.

Which chatbots are compared is settled before there are numbers: the one whose conversations are branched off
from, with each other one. The two that differ most would differ by chance, too, and less the next time,
whatever the histories do.

A place is a turn of a persona with a seed. At the same place of a free-running conversation, each chatbot has
talked itself into another history; of a branched one, all chatbots answer the same message after the same
history. Only places that a detector scored in both count, so nothing but the history differs.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import Self

import numpy as np

from hallulab.scenarios.errors import UsageError
from hallulab.scenarios.text.wording import format_number, format_with_interval, join_names, shorten_line
from hallulab.scenarios.transcript import Conversation, Frozen
from hallulab.simulator.metrics.hallucinations import ByDetector, Pairing, index_by_detector
from hallulab.simulator.metrics.metric import CsvTable, Flaws, Metric, RunFacts, Tallied
from hallulab.simulator.metrics.run_report import RunReport
from hallulab.simulator.records.experiment_json import BranchedFrom
from hallulab.simulator.records.journals import Journals
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
from hallulab.simulator.statistics.differences import ALPHA, adjust_by_holm, compare_pairs
from hallulab.simulator.statistics.intervals import (
    LEAST_FOR_INTERVAL,
    Interval,
    Ratio,
    Rounded,
    compute_interval,
    compute_plain_interval,
    compute_quotient_interval,
    compute_ratio_of_sums,
    explain_no_interval,
    leave_out_ratios,
    sum_by_cluster,
)

_SAME = 1e-12
"""Differences below this are none: nothing can remain of them."""

Place = tuple[Pairing, int]
"""Scenario, persona and seed, and the number of exchanges before the turn."""

Counts = Mapping[Place, int]
"""Hallucinations at the places that a detector scored and localised."""


class SideBySide(Frozen):
    """One chatbot under one detector: an item of `fixed_prefix.rows` in `report.json`."""

    chatbot: str
    detector: str
    branched: int
    """Places at which the chatbot was given a history."""
    free: int
    """Replies that its free-running conversations also have."""
    replies: int
    """Places that the detector scored in both; the numbers below are over these."""
    personas: int
    """Personas that they belong to; intervals are over these."""
    free_hpt_1: Rounded | None
    """Hallucinations per turn, free-running."""
    free_hpt_1_ci95: Interval
    """None: see `no_interval`."""
    fixed_hpt_1: Rounded | None
    """Hallucinations per turn after the given histories."""
    fixed_hpt_1_ci95: Interval
    path: Rounded | None
    """Free-running minus fixed-prefix: what the chatbot's own histories add."""
    path_ci95: Interval
    no_interval: str | None
    """Why intervals are missing."""
    changed: bool | None
    """True if the chatbot's version differs from the free-running conversations'; None: not known."""


class Remaining(Frozen):
    """Two chatbots under one detector: an item of `fixed_prefix.comparisons` in `report.json`."""

    detector: str
    a: str
    b: str
    replies: int
    """Places that the detector scored in all four: of both chatbots, free-running and fixed-prefix."""
    pairs: int
    """Personas that they belong to; tests and intervals are over these."""
    free_difference: Rounded | None
    """HPT-1 of `a` minus that of `b`, free-running."""
    free_ci95: Interval
    """Paired by persona; None: see `no_interval`."""
    free_p_holm: Rounded | None
    """Paired test by flipped signs, adjusted by Holm over the pairs under this detector."""
    fixed_difference: Rounded | None
    """The same after the given histories."""
    fixed_ci95: Interval
    fixed_p_holm: Rounded | None
    remaining: Rounded | None
    """fixed_difference / free_difference: the share that the chatbots themselves explain. Negative: the order
    turns round. None unless the free difference is significant after Holm."""
    remaining_ci95: Interval
    """By Fieller."""
    path: Rounded | None
    """free_difference minus fixed_difference: what the histories explain."""
    path_ci95: Interval
    no_interval: str | None
    """Why intervals are missing."""


class FixedPrefix(Frozen):
    """Both ways to compare chatbots: `fixed_prefix` in `report.json`."""

    branched_from: BranchedFrom
    """The run that conversations branch off from."""
    rows: tuple[SideBySide, ...]
    """Each chatbot under each detector."""
    comparisons: tuple[Remaining, ...]
    """The chatbot of `branched_from` and each other one, under each detector."""


class Places:
    """The places of one chatbot's conversations in a run."""

    def __init__(self) -> None:
        self.of: dict[Place, str] = {}
        """Place → the conversation's identifier."""
        self.versions: set[str] = set()
        """Versions of the chatbot; empty: not known."""
        self.counts: dict[str, dict[Place, int]] = defaultdict(dict)
        """Detector → hallucinations by place."""

    def merge(self, other: Places) -> None:
        """Add the places of other personas."""
        self.of.update(other.of)
        self.versions |= other.versions
        for detector, counts in other.counts.items():
            self.counts[detector].update(counts)

    def add(self, one: Conversation, verdicts: ByDetector, detectors: Sequence[str]) -> None:
        """Add a conversation and the verdicts on it."""
        self.versions.add(one.version.partition("-")[2])
        for turn in one.turns:
            place = ((one.scenario, one.persona, one.seed), one.depth(turn.index))
            if place in self.of:
                raise UsageError(
                    f"{one.chatbot} has two replies to persona {one.persona}, seed {one.seed} at turn "
                    f"{place[1]}: conversations {self.of[place]} and {one.id}. Report on one configuration "
                    "at a time."
                )
            self.of[place] = one.id
            for detector in detectors:
                verdict = verdicts.get(detector, {}).get(turn.index)
                if verdict is not None and verdict.spans is not None and verdict.localised:
                    self.counts[detector][place] = len(verdict.spans)


def collect_places(journals: Journals | None, detectors: Sequence[str]) -> Mapping[str, Places]:
    """Return the places of each chatbot's turns; empty without journals.

    Raises:
        UsageError: a place occurs twice, or a turn has two verdicts of a detector.
    """
    found: dict[str, Places] = defaultdict(Places)
    for conversation, verdicts in () if journals is None else journals.judged():
        found[conversation.chatbot].add(conversation, index_by_detector(verdicts), detectors)
    return found


def compare_side_by_side(
    branched_from: BranchedFrom,
    ran: Mapping[str, Places],
    given: Mapping[str, Places],
    chatbots: Sequence[str],
    detectors: Sequence[str],
) -> FixedPrefix:
    """Set the branched conversations beside those that ran freely.

    Args:
        branched_from: the run that they branch off from.
        ran: its places, by chatbot; those without are empty.
        given: those of the branched conversations, likewise.
        chatbots: names, in the order of the report.
        detectors: likewise.
    """
    rows: list[SideBySide] = []
    counts: dict[str, dict[str, tuple[Counts, Counts]]] = {detector: {} for detector in detectors}
    for chatbot in chatbots:
        for detector in detectors:
            both = ran[chatbot].counts[detector], given[chatbot].counts[detector]
            counts[detector][chatbot] = both
            rows.append(_build_row(chatbot, detector, ran[chatbot], given[chatbot], *both))
    return FixedPrefix(
        branched_from=branched_from,
        rows=tuple(rows),
        comparisons=tuple(
            line for name in detectors for line in _compare_all(name, branched_from.chatbot, counts[name])
        ),
    )


def _sum_by_persona(places: Sequence[Place], counts: Counts) -> list[Ratio]:
    """Return hallucinations over turns, by persona."""
    return sum_by_cluster((place[0][:2], Ratio(counts[place], 1)) for place in places)


def _build_row(
    chatbot: str,
    detector: str,
    ran: Places,
    given: Places,
    free: Counts,
    fixed: Counts,
) -> SideBySide:
    places = sorted(free.keys() & fixed.keys())
    freely, fixedly = _sum_by_persona(places, free), _sum_by_persona(places, fixed)
    path = compare_pairs(freely, fixedly, "rate")
    free_ci95, fixed_ci95 = compute_interval(freely, "rate"), compute_interval(fixedly, "rate")
    return SideBySide(
        chatbot=chatbot,
        detector=detector,
        branched=len(given.of),
        free=len(given.of.keys() & ran.of.keys()),
        replies=len(places),
        personas=path.pairs,
        free_hpt_1=compute_ratio_of_sums(freely),
        free_hpt_1_ci95=free_ci95,
        fixed_hpt_1=compute_ratio_of_sums(fixedly),
        fixed_hpt_1_ci95=fixed_ci95,
        path=path.difference,
        path_ci95=path.ci95,
        no_interval=explain_no_interval(
            path.pairs,
            found={"free-running HPT-1": free_ci95, "fixed-prefix HPT-1": fixed_ci95, "path": path.ci95},
        ),
        changed=_is_changed(ran, given),
    )


def _is_changed(ran: Places, given: Places) -> bool | None:
    """Return whether the conversations are of different versions of their chatbot; None: not known."""
    before, now = ran.versions, given.versions
    if not before or not now or "" in before | now:
        return None
    return before != now


def _compare_all(detector: str, source: str, counts: Mapping[str, tuple[Counts, Counts]]) -> list[Remaining]:
    others = [name for name in counts if name != source] if source in counts else []
    found = [_compare_remaining(detector, source, other, counts[source], counts[other]) for other in others]
    free, fixed = (
        adjust_by_holm([getattr(line, name) for line in found]) for name in ("free_p_holm", "fixed_p_holm")
    )
    lines = []
    for line, p_free, p_fixed in zip(found, free, fixed, strict=True):
        changed: dict[str, object] = {"free_p_holm": p_free, "fixed_p_holm": p_fixed}
        if p_free is None or p_free >= ALPHA:
            changed |= {"remaining": None, "remaining_ci95": None}
        lines.append(Remaining(**{**dict(line), **changed}))
    return lines


def _compare_remaining(
    detector: str, a: str, b: str, first: tuple[Counts, Counts], second: tuple[Counts, Counts]
) -> Remaining:
    """Compare two chatbots both ways; p-values are not adjusted, and any difference has a share."""
    places = sorted(first[0].keys() & first[1].keys() & second[0].keys() & second[1].keys())
    sums = [(_sum_by_persona(places, first[way]), _sum_by_persona(places, second[way])) for way in (0, 1)]
    free, fixed = (compare_pairs(*own, "rate") for own in sums)
    # The same places count in all four, so the difference of the differences is a ratio of sums, too.
    path = sum_by_cluster(
        (place[0][:2], Ratio(first[0][place] - second[0][place] - first[1][place] + second[1][place], 1))
        for place in places
    )
    path_ci95, remaining_ci95 = None, None
    if len(path) >= LEAST_FOR_INTERVAL:
        without = [leave_out_ratios(one) - leave_out_ratios(two) for one, two in reversed(sums)]
        remaining_ci95 = compute_quotient_interval(
            fixed.difference or 0.0, free.difference or 0.0, np.column_stack(without)
        )
        path_ci95 = compute_plain_interval(compute_ratio_of_sums(path) or 0.0, leave_out_ratios(path))
    return Remaining(
        detector=detector,
        a=a,
        b=b,
        replies=len(places),
        pairs=free.pairs,
        free_difference=free.difference,
        free_ci95=free.ci95,
        free_p_holm=free.p_value,
        fixed_difference=fixed.difference,
        fixed_ci95=fixed.ci95,
        fixed_p_holm=fixed.p_value,
        remaining=_share(fixed.difference, free.difference),
        remaining_ci95=remaining_ci95,
        path=compute_ratio_of_sums(path),
        path_ci95=path_ci95,
        no_interval=explain_no_interval(
            free.pairs,
            found={
                "free-running difference": free.ci95,
                "fixed-prefix difference": fixed.ci95,
                "path": path_ci95,
            },
        ),
    )


def _share(part: float | None, whole: float | None) -> float | None:
    return None if part is None or whole is None or abs(whole) < _SAME else part / whole


SIDES = (
    CHATBOT,
    DETECTOR,
    Column("Replies", "replies", "turns that the detector scored in both runs; the numbers are over these",
           short="Replies"),
    Column("of", "branched", "all turns at which the chatbot was given a history", short="of"),
    Column("HPT-1 free-running", "free_hpt_1",
           "hallucinations over these turns, after the chatbot's own history", TWO_DECIMALS,
           beside="free_hpt_1_ci95", short="HPT-1\nfree-running"),
    Column("HPT-1 fixed-prefix", "fixed_hpt_1",
           "the same after the given history, which all chatbots share", TWO_DECIMALS,
           beside="fixed_hpt_1_ci95", short="HPT-1\nfixed-prefix"),
    Column("Path", "path", "free-running minus fixed-prefix: what the chatbot's own histories add",
           TWO_DECIMALS, beside="path_ci95", short="Path"),
)  # fmt: skip
REMAINING = (
    Column("a", "a", "the chatbot whose conversations are branched off from", kind="name"),
    Column("b", "b", "another one", kind="name"),
    Column("Replies", "replies", "turns that the detector scored of both chatbots in both runs"),
    Column("Δ HPT-1 free-running", "free_difference",
           "HPT-1 of a minus that of b over these turns, free-running", TWO_DECIMALS,
           beside="free_ci95"),
    Column("p (Holm)", "free_p_holm", "paired test of it, adjusted by Holm", format_p),
    Column("Δ HPT-1 fixed-prefix", "fixed_difference", "the same after the given histories",
           TWO_DECIMALS,
           beside="fixed_ci95"),
    Column("p (Holm)", "fixed_p_holm", "paired test of it, adjusted by Holm", format_p),
    Column("Remains %", "remaining",
           "fixed-prefix difference over free-running one, if that is significant: the chatbots' own share",
           PERCENT, beside="remaining_ci95"),
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

    def __init__(self, run: RunFacts) -> None:
        super().__init__(run)
        self._given: dict[str, Places] = defaultdict(Places)

    def add(self, conversation: Conversation, verdicts: ByDetector, flaws: Flaws) -> None:
        """Keep a branched conversation's places."""
        if self.run.branched_from is not None:
            self._given[conversation.chatbot].add(conversation, verdicts, self.run.detectors)

    def merge(self, other: Self) -> None:
        """Add the places of other conversations."""
        for chatbot, places in other._given.items():
            self._given[chatbot].merge(places)

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
            f"{shorten_line(', '.join(changed))}: changed since the free-running conversations ran, "
            "so the "
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
            f"{detector}: no turn of {shorten_line(', '.join(unjudged))} was scored in both runs. If it "
            "did not "
            f"judge {found.branched_from.run}: `hallulab detect` there, and then `hallulab branch` again."
        )
    return lines
