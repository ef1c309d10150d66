"""How far detectors contradict themselves where they are asked again (`hallulab detect --again`).

The second question has another seed, and the passages in another order. A verdict that flips is the judge's
own noise. With v, half the mean square of the difference between the two numbers of hallucinations of a
reply, the judge alone gives the HPT of T turns the variance v / T, and a difference between two halves of
these turns the variance 4 v / T. The mean size of such a difference is √(8 v / π T), if it is normal.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from itertools import combinations

import numpy as np

from hallulab.agents.models.abilities import SeedUse
from hallulab.scenarios.transcript import Conversation, Frozen, Verdict
from hallulab.simulator.metrics.hallucinations import ByDetector
from hallulab.simulator.metrics.metric import LAST, Flaws, RunFacts, TableMetric, Tallied
from hallulab.simulator.metrics.run_report import RunReport
from hallulab.simulator.records.journal_lines import VerdictKey, build_verdict_key
from hallulab.simulator.show.columns import DETECTOR, PERCENT, TWO_DECIMALS, Column
from hallulab.simulator.statistics.intervals import (
    LEAST_FOR_INTERVAL,
    Bounds,
    Floats,
    Interval,
    Ratio,
    Rounded,
    compute_interval,
    compute_jackknife_error,
    compute_ratio_of_sums,
    compute_t_interval,
)
from hallulab.simulator.statistics.sums import ExactSum, Person, PersonSums, Spread


class JudgeNoiseRow(Frozen):
    """A detector beside itself, on replies that it was asked about twice: a row of `report.json`."""

    detector: str
    asked: int
    scored: int
    coverage: Rounded | None
    failed: int
    """Those on which it failed the second time."""
    flipped: Rounded | None
    flipped_ci95: Interval
    """Over personas; None with fewer than six, and where all have the same share."""
    flagged: int
    cleared: int
    score_change: Rounded | None
    noise_floor: Rounded | None
    """How far HPT-1 of halves of one chatbot's conversations differs, the mean of chatbots, as measured
    (`Comparison.floor`). None: a persona has one seed."""
    judge_floor: Rounded | None
    """How far it would differ by the judge alone, likewise the mean. None: no reply was localised twice."""
    judge_floor_ci95: Interval
    """Over personas."""
    judge_share: Rounded | None
    """Share of the variance of HPT between seeds of one persona that is the judge's own, at most 1, summed
    over chatbots. None: no persona has two seeds."""
    judge_share_ci95: Interval
    """Over personas; None with fewer than six, and at 0 and 1."""
    asks_model: bool | None
    """True if it asks a served model; None: not known."""
    seeds: SeedUse | None
    """Effect of seeds at the endpoints of its models, the least of them; None: not known."""


class JudgeNoise(TableMetric[JudgeNoiseRow]):
    """Counts verdicts that flip."""

    NAME, TITLE, LINK, ROW = "judge_noise", "The judge's own noise", "Judge's noise", JudgeNoiseRow
    ORDER, TERMINAL_ORDER = 71, LAST + 1
    FILE = "with rows"
    COLUMNS = (
        DETECTOR,
        Column("Flips %", "flipped",
               "share of the replies scored twice, with another seed and order of passages, that are flagged "
               "only once", PERCENT, beside="flipped_ci95", short="Flips %"),
        Column("Scored again", "scored", "replies that it scored twice", short="Scored\nagain"),
        Column("of", "asked", "replies that it scored, and was asked about again", short="of"),
        Column("Coverage %", "coverage", "share of these that it scored again", PERCENT, short="Cov.\n%",
               warns=lambda share: share is not None and share < 1),
        Column("Newly flagged", "flagged", "clean replies that it flags the second time"),
        Column("Cleared", "cleared", "flagged replies that it does not flag the second time"),
        Column("|Δ score|", "score_change", "mean absolute difference of the two scores", TWO_DECIMALS,
               short="|Δ score|"),
        Column("Noise floor", "noise_floor",
               "difference of HPT-1 between halves of one chatbot's conversations that differ in seeds "
               "only, mean of the chatbots", TWO_DECIMALS, short="Noise\nfloor"),
        Column("By the judge", "judge_floor", "the same by the judge's own noise alone", TWO_DECIMALS,
               beside="judge_floor_ci95", short="By the\njudge"),
        Column("By the judge %", "judge_share",
               "share of the variance of HPT between seeds that is the judge's own", PERCENT,
               beside="judge_share_ci95", short="By the\njudge %"),
    )  # fmt: skip

    COUNTS = ("_sums", "_changes")

    def __init__(self, run: RunFacts) -> None:
        super().__init__(run)
        self._sums = PersonSums(_WIDTH)
        self._changes: defaultdict[str, ExactSum] = defaultdict(ExactSum)

    def add(self, conversation: Conversation, verdicts: ByDetector, flaws: Flaws) -> None:
        """Count the verdicts on a conversation that have a second one."""
        person = (conversation.scenario, conversation.persona)
        for detector, turns in verdicts.items():
            for first, second in _pair_verdicts(turns, self.run.again):
                numbers = _count_pair(first, second)
                self._sums.add(person, (detector,), numbers)
                if numbers[1]:
                    self._changes[detector].add(abs((second.score or 0.0) - (first.score or 0.0)))

    def table(self, tallied: Tallied) -> Sequence[JudgeNoiseRow]:
        """Return a row for each detector that was asked again."""
        asked = {key[0] for key in self._sums.keys}
        return [self._build_row(name, tallied) for name in self.run.detectors if name in asked]

    def _build_row(self, detector: str, tallied: Tallied) -> JudgeNoiseRow:
        by_person = dict(self._sums.items((detector,)))
        own = list(by_person.values())
        asked, scored, failed, flagged, cleared, _, _ = (sum(column) for column in zip(*own, strict=True))
        flips = [Ratio(new + gone, both) for _, both, _, new, gone, _, _ in own if both]
        squares = [Ratio(square, localised) for *_, localised, square in own if localised]
        sums = {
            name: rows
            for name in self.run.chatbots
            if (rows := tallied.sums.rows[name, detector]).counts["scored_turns"]
        }
        turns = [rows.counts["scored_turns"] for rows in sums.values()]
        noise = compute_ratio_of_sums(squares)
        bounds = compute_interval(squares, "rate")
        halves = [tallied.sums.halves(name, detector).difference("hpt_1") for name in sums]
        known = [half for half in halves if half is not None]
        share, share_ci95 = _measure_share(
            {person: (one[6], one[5]) for person, one in by_person.items()},
            [(rows.scored / rows.counts["scored_turns"], rows.seed_spreads()) for rows in sums.values()],
        )
        models = self._list_models(detector)
        return JudgeNoiseRow(
            detector=detector,
            asked=asked,
            scored=scored,
            coverage=scored / asked,
            failed=failed,
            flipped=compute_ratio_of_sums(flips),
            flipped_ci95=compute_interval(flips, "share"),
            flagged=flagged,
            cleared=cleared,
            score_change=self._changes[detector].value() / scored if scored else None,
            noise_floor=sum(known) / len(known) if known and len(known) == len(halves) else None,
            judge_floor=None if noise is None else _derive_floor(noise, turns),
            judge_floor_ci95=bounds and (_derive_floor(bounds[0], turns), _derive_floor(bounds[1], turns)),
            judge_share=share,
            judge_share_ci95=share_ci95,
            asks_model=None if models is None else bool(models),
            seeds=self._find_seeds(models or ()),
        )

    def _list_models(self, detector: str) -> Sequence[str] | None:
        """Return the models that a detector asks; None: not known."""
        check = self.run.claim_checks.detectors.get(detector)
        return None if check is None else check.models

    def _find_seeds(self, models: Sequence[str]) -> SeedUse | None:
        uses = {read.seed for read in self.run.read_how if read.model in models and read.asked}
        order: Sequence[SeedUse] = ("refused", "ignored", "kept")
        return next((use for use in order if use in uses), None)

    @classmethod
    def lines(cls, report: RunReport) -> Sequence[str]:
        """Say what the second question does not change."""
        found = []
        for row in cls.rows(report):
            if row.asks_model is False:
                found.append(
                    f"{row.detector} asks no model, so another seed does not change it: only another order "
                    "of the passages may."
                )
            elif row.seeds in ("ignored", "refused"):
                does = "ignores seeds" if row.seeds == "ignored" else "takes no seed"
                found.append(
                    f"{row.detector} was asked again without another seed, because its endpoint {does}: "
                    "flips are by the order of the passages, and by the chance of that endpoint."
                )
            if row.failed:
                found.append(
                    f"{row.detector} failed on {row.failed} of {row.asked} replies the second time. They are "
                    "left out: a failure is no verdict that stays the same."
                )
        return found

    @classmethod
    def hints(cls, report: RunReport) -> Sequence[str]:
        """Say what is compared."""
        about = (
            "Replies that a detector scored, asked again by another seed and with the passages in another "
            "order: `hallulab detect --again`. The verdicts of the run are the first ones everywhere else."
        )
        return (about, *cls.lines(report))


_WIDTH = 7
"""Numbers of `_count_pair`."""


def _pair_verdicts(
    turns: Mapping[int, Verdict], again: Mapping[VerdictKey, Verdict]
) -> Iterator[tuple[Verdict, Verdict]]:
    """Yield the scored verdicts of one detector that have a second one, and these."""
    for first in turns.values() if again else ():
        second = again.get(build_verdict_key(first))
        if second is not None and first.outcome == "scored":
            yield first, second


def _count_pair(first: Verdict, second: Verdict) -> tuple[int, ...]:
    """Count what a reply adds to the sums of a row.

    These are asked, scored, failed, newly flagged, cleared, localised twice, and the square of the difference
    of its hallucinations.
    """
    if second.outcome != "scored":
        return 1, 0, int(second.outcome == "failed"), 0, 0, 0, 0
    new, gone = bool(second.flagged) > bool(first.flagged), bool(first.flagged) > bool(second.flagged)
    localised = first.localised and second.localised
    square = (len(second.spans or ()) - len(first.spans or ())) ** 2 if localised else 0
    return 1, 1, 0, int(new), int(gone), int(localised), square


def _derive_floor(squares: float, turns: Sequence[int]) -> float:
    """Return the mean over chatbots of how far two halves of their turns differ by the judge alone.

    Args:
        squares: mean square of the difference between a reply's two numbers of hallucinations: 2 v.
        turns: scored turns of each chatbot.
    """
    return sum(math.sqrt(4 * squares / (math.pi * number)) for number in turns) / len(turns)


def _measure_share(
    squares: Mapping[Person, tuple[int, int]], chatbots: Sequence[tuple[float, Mapping[Person, Spread]]]
) -> tuple[float | None, Bounds | None]:
    """Return the judge's share of the variance between seeds, summed over chatbots, and its interval.

    Args:
        squares: each person's sum of squares as `_derive_floor` has their mean, and how many there are.
        chatbots: conversations a turn of each, and how its HPT spreads between seeds.
    """
    persons = sorted({*squares, *(person for _, spreads in chatbots for person in spreads)})
    noise = np.array([squares.get(person, (0, 0)) for person in persons], dtype=float).reshape(-1, 2)
    spread = np.zeros((len(chatbots), len(persons), 2))
    for place, (_, spreads) in enumerate(chatbots):
        for at, person in enumerate(persons):
            if (one := spreads.get(person)) is not None:
                spread[place, at] = one.squares, one.seeds - 1
    scale = sum(conversations for conversations, _ in chatbots)

    def divide(judge: Floats, seeds: Floats) -> Floats:
        """Return the shares of sums of shape (…, 2) and (chatbots, …, 2); NaN where they are not defined."""
        with np.errstate(invalid="ignore", divide="ignore"):
            told = (seeds[..., 0] / seeds[..., 1]).sum(axis=0)
            shares = judge[..., 0] / judge[..., 1] / 2 * scale / np.where(told > 0, told, np.nan)
        return np.minimum(shares, 1.0)

    whole, all_seeds = noise.sum(axis=0), spread.sum(axis=1)
    share = float(divide(whole, all_seeds))
    if math.isnan(share):
        return None, None
    if len(persons) < LEAST_FOR_INTERVAL:
        return share, None
    error = compute_jackknife_error(divide(whole - noise, all_seeds[:, None] - spread))
    return share, compute_t_interval(share, error, len(persons) - 1, "logit")


class DisagreementRow(Frozen):
    """Two detectors on replies that both were asked about twice: a row of `report.json`."""

    a: str
    b: str
    replies: int
    disagree: int
    by_a: int
    by_b: int
    by_both: int
    explained: Rounded | None
    """Share of `disagree` on which at least one flips; None: they never disagree."""
    explained_ci95: Interval
    """Over personas."""


class ExplainedDisagreements(TableMetric[DisagreementRow]):
    """Counts disagreements of two detectors that are the noise of one of them."""

    NAME, TITLE, LINK = "disagreements", "Whose noise disagreements are", "Disagreements"
    ROW = DisagreementRow
    ORDER, TERMINAL_ORDER = 72, LAST + 1
    FILE = "with rows"
    COLUMNS = (
        Column("a", "a", "a detector", kind="name", short="a"),
        Column("b", "b", "another one", kind="name", short="b"),
        Column("Disagree", "disagree", "replies that only one of them flags", short="Disagree"),
        Column("of", "replies", "replies that both scored twice", short="of"),
        Column("By noise %", "explained",
               "share of the disagreements in which one of them flips when asked again", PERCENT,
               beside="explained_ci95", short="By noise %"),
        Column("Only a flips", "by_a", "disagreements on which only a flips", short="Only a\nflips"),
        Column("Only b flips", "by_b", "disagreements on which only b flips", short="Only b\nflips"),
        Column("Both flip", "by_both", "disagreements on which both flip", short="Both\nflip"),
    )  # fmt: skip

    COUNTS = ("_sums",)
    HINTS = (
        "Replies on which two detectors disagree by their first verdicts. Where one of them flips when "
        "it is asked again, noise explains the disagreement.",
    )

    def __init__(self, run: RunFacts) -> None:
        super().__init__(run)
        self._sums = PersonSums(5)

    def add(self, conversation: Conversation, verdicts: ByDetector, flaws: Flaws) -> None:
        """Count the replies that two detectors scored twice."""
        person = (conversation.scenario, conversation.persona)
        twice: dict[str, dict[int, tuple[bool, bool]]] = {}
        for detector, turns in verdicts.items():
            for first, second in _pair_verdicts(turns, self.run.again):
                if second.outcome == "scored":
                    twice.setdefault(detector, {})[first.turn] = (bool(first.flagged), bool(second.flagged))
        for pair in combinations([name for name in self.run.detectors if name in twice], 2):
            one, other = (twice[name] for name in pair)
            for turn in one.keys() & other.keys():
                (flag, again), (other_flag, other_again) = one[turn], other[turn]
                differ, a, b = flag != other_flag, flag != again, other_flag != other_again
                counts = (True, differ, differ and a and not b, differ and b and not a, differ and a and b)
                self._sums.add(person, pair, [*map(int, counts)])

    def table(self, tallied: Tallied) -> Sequence[DisagreementRow]:
        """Return a row for every two detectors that scored a reply twice."""
        found = []
        for a, b in combinations(self.run.detectors, 2):
            own = [numbers for _, numbers in self._sums.items((a, b))]
            if not own:
                continue
            replies, disagree, by_a, by_b, by_both = (sum(column) for column in zip(*own, strict=True))
            shares = [Ratio(sum(flips), differ) for _, differ, *flips in own if differ]
            found.append(
                DisagreementRow(
                    a=a,
                    b=b,
                    replies=replies,
                    disagree=disagree,
                    by_a=by_a,
                    by_b=by_b,
                    by_both=by_both,
                    explained=compute_ratio_of_sums(shares),
                    explained_ci95=compute_interval(shares, "share"),
                )
            )
        return found
