"""Free-running and fixed-prefix conversations side by side: places, sums by persona, and their differences.

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

import numpy as np

from hallulab.scenarios.errors import UsageError
from hallulab.scenarios.transcript import Conversation, Frozen, Pairing
from hallulab.simulator.metrics.hallucinations import ByDetector, index_by_detector
from hallulab.simulator.records.experiment_json import BranchedFrom
from hallulab.simulator.records.journals import Journals
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

    def is_changed_since(self, other: Places) -> bool | None:
        """Return whether the conversations are of different versions of their chatbot; None: not known."""
        before, now = other.versions, self.versions
        return None if not before or not now or "" in before | now else before != now

    def add(self, one: Conversation, verdicts: ByDetector, detectors: Sequence[str]) -> None:
        """Add a conversation and the verdicts on it."""
        self.versions.add(one.version.partition("-")[2])
        for turn in one.turns:
            place = (one.pairing, one.depth(turn.index))
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
    chatbot: str, detector: str, ran: Places, given: Places, free: Counts, fixed: Counts
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
        changed=given.is_changed_since(ran),
    )


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
    part, whole = fixed.difference, free.difference
    remaining = None if part is None or whole is None or abs(whole) < _SAME else part / whole
    path_ci95, remaining_ci95 = None, None
    if len(path) >= LEAST_FOR_INTERVAL:
        without = [leave_out_ratios(one) - leave_out_ratios(two) for one, two in reversed(sums)]
        remaining_ci95 = compute_quotient_interval(part or 0.0, whole or 0.0, np.column_stack(without))
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
        remaining=remaining,
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
