"""How far two runs differ in their metrics, paired by persona where they can be."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from hallulab.scenarios.transcript import Frozen
from hallulab.simulator.compare.summary import RunSummary
from hallulab.simulator.metrics.hallucinations import Tally
from hallulab.simulator.metrics.run_sums import (
    KINDS,
    RATES,
    ByPlace,
    HalfSums,
    RateName,
    index_by_place,
    pair_places,
)
from hallulab.simulator.statistics.differences import (
    ALPHA,
    adjust_by_holm,
    compare_all_pairs,
    compare_unpaired,
)
from hallulab.simulator.statistics.intervals import (
    LEAST_FOR_INTERVAL,
    Interval,
    Ratio,
    Rounded,
    compute_ratio_of_sums,
    explain_no_interval,
    sum_by_cluster,
)
from hallulab.simulator.statistics.planning import compute_least_pairs
from hallulab.simulator.statistics.sums import Person


class DifferenceLine(Frozen):
    """A chatbot in two runs under one detector by one metric."""

    chatbot: str
    detector: str
    metric: RateName
    paired: bool
    """Personas are paired. If not, both runs have other personas, and the interval is wider."""
    same_seeds: bool
    """The paired conversations have the same seeds; else all seeds of a persona are added up."""
    personas: int
    """Personas that are paired; of unpaired ones, those of the run that has fewer."""
    before: Rounded | None
    """The metric in the reference, over the personas that enter; None: nothing was scored."""
    after: Rounded | None
    """The metric in the other run, likewise."""
    difference: Rounded | None
    ci95: Interval
    """Over personas; None: see `no_interval`."""
    no_interval: str | None
    """Why there is none."""
    p_value: Rounded | None
    """Two-sided test, by flipped signs where paired, else by exchanged personas; None where there are too few
    personas for one."""
    p_holm: Rounded | None = None
    """Adjusted by Holm over all lines of all runs compared; shares of answered replies over those of all runs
    and chatbots."""
    floor: Rounded | None
    """The noise floor: how far halves of one run differ that have the same personas and other seeds, the mean
    of the runs in which each persona has several seeds. None: neither."""

    @property
    def pairs(self) -> int:
        """Pairs of the test; 0 where there is none."""
        return self.personas if self.paired else 0

    @property
    def is_significant(self) -> bool:
        """The test finds a difference."""
        return self.p_holm is not None and self.p_holm < ALPHA

    @property
    def worse(self) -> bool:
        """The test finds the run worse than the reference."""
        return self.is_significant and self.harm > 0

    @property
    def harm(self) -> float:
        """The difference, positive where the run is worse than the reference; 0 where there is none."""
        found = self.difference or 0.0
        return found if self.metric == "hpt_1" else -found

    def halve_p(self) -> float | None:
        """Return the one-sided p-value of a paired line, 1 where it is not worse; None: there is no test."""
        if not self.paired or self.p_value is None:
            return None
        return self.p_value / 2 if self.harm > 0 else 1.0


@dataclass(frozen=True)
class _Sides:
    """The ratios of both runs, those of the other run first, as `Difference` subtracts."""

    after: Sequence[Ratio]
    before: Sequence[Ratio]
    paired: bool
    same_seeds: bool


Tallies = Mapping[str, Sequence[Tally]]
"""Chatbot → tallies of one detector."""


def count_summary(summary: RunSummary, detector: str) -> dict[str, list[Tally]]:
    """Return the tallies of a run under one detector, by chatbot."""
    found: dict[str, list[Tally]] = defaultdict(list)
    for one in summary.conversations:
        found[one.chatbot].append(one.tally(detector))
    return dict(found)


def compare_tallies(
    before: Tallies, after: Tallies, chatbots: Sequence[str], detector: str
) -> list[DifferenceLine]:
    """Compare chatbots under one detector by every metric; p-values are not adjusted yet.

    Raises:
        UsageError: a run has two conversations of a chatbot with the same scenario, persona and seed.
    """
    keys = [(chatbot, rate) for rate in RATES for chatbot in chatbots]
    sides = [_choose_sides(before.get(bot, ()), after.get(bot, ()), rate) for bot, rate in keys]
    paired = iter(
        compare_all_pairs(
            [
                (one.after, one.before, KINDS[rate])
                for one, (_, rate) in zip(sides, keys, strict=True)
                if one.paired
            ]
        )
    )
    tested = [
        next(paired) if one.paired else compare_unpaired(one.after, one.before, KINDS[rate])
        for one, (_, rate) in zip(sides, keys, strict=True)
    ]
    lines = []
    for (bot, rate), one, found in zip(keys, sides, tested, strict=True):
        personas = min(len(one.after), len(one.before))
        unexplained = not one.paired and personas >= LEAST_FOR_INTERVAL and found.ci95 is None
        lines.append(
            DifferenceLine(
                chatbot=bot,
                detector=detector,
                metric=rate,
                paired=one.paired,
                same_seeds=one.same_seeds,
                personas=personas,
                before=compute_ratio_of_sums(one.before),
                after=compute_ratio_of_sums(one.after),
                difference=found.difference,
                ci95=found.ci95,
                no_interval="every persona of a run has the same number"
                if unexplained
                else explain_no_interval(personas, found={"difference": found.ci95}),
                p_value=found.p_value,
                floor=_compute_floor((before.get(bot, ()), after.get(bot, ())), rate),
            )
        )
    return lines


def adjust_lines(lines: Sequence[DifferenceLine]) -> list[DifferenceLine]:
    """Return the lines with p-values adjusted by Holm, in one family of tests.

    Shares of answered replies answer another question, so they are a family of their own. They are the same
    under each detector, so each detector's lines are one.
    """
    families: dict[str, list[int]] = defaultdict(list)
    for place, line in enumerate(lines):
        families[line.detector if line.metric == "answered" else ""].append(place)
    found = list(lines)
    for places in families.values():
        for place, p in zip(places, adjust_by_holm([lines[at].p_value for at in places]), strict=True):
            update = {"p_holm": None if p is None else round(p, 6)}
            found[place] = lines[place].model_copy(update=update)
    return found


def find_harm(lines: Sequence[DifferenceLine]) -> tuple[int, tuple[float | None, ...]]:
    """Return the pairs without which no test finds one of these lines worse, and their one-sided p-values.

    The p-values are adjusted by Holm over the lines; None: there is no test.
    """
    halves = [line.halve_p() for line in lines]
    needed = compute_least_pairs(max(1, sum(half is not None for half in halves)))
    return needed, adjust_by_holm(halves)


def _choose_sides(before: Sequence[Tally], after: Sequence[Tally], rate: RateName) -> _Sides:
    """Pair the runs by persona, unless only unpaired they have personas enough for an interval."""
    one, other = _group_by_person(index_by_place(before, rate)), _group_by_person(index_by_place(after, rate))
    shared = sorted(one.keys() & other.keys())
    fewest = min(len(one), len(other))
    if not shared or len(shared) < LEAST_FOR_INTERVAL <= fewest:
        return _Sides(_sum_persons(other), _sum_persons(one), paired=False, same_seeds=False)
    pairs, same = [], True
    for person in shared:
        places = pair_places(other[person], one[person])
        if places:
            sums = zip(*places.values(), strict=True)
            pairs.append(tuple(_add_up(side) for side in sums))
        else:
            same = False
            pairs.append((_add_up(other[person].values()), _add_up(one[person].values())))
    return _Sides([pair[0] for pair in pairs], [pair[1] for pair in pairs], paired=True, same_seeds=same)


def _group_by_person(ratios: ByPlace) -> dict[Person, ByPlace]:
    found: dict[Person, ByPlace] = defaultdict(dict)
    for place, ratio in ratios.items():
        found[place[0][:2]][place] = ratio
    return dict(found)


def _sum_persons(persons: Mapping[Person, ByPlace]) -> list[Ratio]:
    return [_add_up(persons[person].values()) for person in sorted(persons)]


def _add_up(ratios: Iterable[Ratio]) -> Ratio:
    return sum_by_cluster(("", ratio) for ratio in ratios)[0]


def _compute_floor(runs: Iterable[Sequence[Tally]], rate: RateName) -> float | None:
    """Return the mean over the runs of how far their halves by repeat differ."""
    found = []
    for tallies in runs:
        halves, persons = HalfSums(), defaultdict(list)
        for tally in tallies:
            persons[tally.person].append(tally)
        for person in sorted(persons):
            halves.add(persons[person])
        difference = halves.difference(rate)
        if difference is not None:
            found.append(difference)
    return sum(found) / len(found) if found else None
