"""How much narrower chosen labels make the corrected interval: `python -m benchmarks.label_next`.

The output stands in docs/studies/annotate.md. The data set gold has 57 turns of five chatbots, all labelled.
A simulated annotator, who gives these labels, labels 20 of them: those that `hallulab annotate --next 20`
draws, or 20 at random, 200 times. Intervals are of what labels of all turns give, which is known. A draw that
leaves a chatbot without two labels corrects nothing and is drawn again; chosen draws never do. Then the same
on made-up runs of many conversations, as in benchmarks/corrected_coverage.py. "In two halves": half of the
labels are drawn first, and the others by what these tell. The model's answers are replayed from
tests/recordings.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np

from benchmarks.command import build_parser, format_head, format_row
from benchmarks.corrected_coverage import made_up, truth
from benchmarks.corrected_gold import read_gold
from hallulab.scenarios.datasets.annotations import Draw
from hallulab.scenarios.text.wording import format_number
from hallulab.simulator.annotate.plan import DrawPlan, ScoredTurn, draw_cells, plan_draw
from hallulab.simulator.annotate.sheet import collect_scored_turns
from hallulab.simulator.metrics.corrections import LEAST_ANNOTATED, estimate_by_people
from hallulab.simulator.metrics.judged_turns import JudgedTurn, Panel, collect_judged_turns, sum_judged_turns
from hallulab.simulator.records.journals import Journals
from hallulab.simulator.statistics.intervals import compute_t_interval
from hallulab.simulator.statistics.prediction_powered import PPIEstimate, estimate_drawn_error, estimate_means

DETECTORS = ("halludetect", "metarag")
DRAWS = 200
LABELS = 20
SEED = 0
MADE_UP = (((0.6, 0.95), 0.3), ((0.6, 0.99), 0.03), ((0.9, 0.99), 0.03))
"""Sensitivity and specificity at sentences of a made-up detector, and the share of hallucinated sentences."""
CONVERSATIONS = 100
CHATBOTS = 2
MADE_UP_LABELS = 60

Drawn = dict[int, Draw]
"""Place of a turn → how it was drawn."""


@dataclass(frozen=True)
class Sample:
    """The turns of a run with all labels, as a draw sees them and as numbers are made of them."""

    scored: list[ScoredTurn]
    judged: list[JudgedTurn]

    def hide(self, drawn: Drawn) -> list[ScoredTurn]:
        """Return the turns with those labels alone that were drawn."""
        return [turn if at in drawn else replace(turn, annotated=None) for at, turn in enumerate(self.scored)]


Design = Callable[[Sample, int, np.random.Generator], Drawn]
"""What draws so many turns of a run."""


@dataclass(frozen=True)
class Outcome:
    """What draws of labels gave."""

    width: float
    """Mean width of the intervals."""
    covered: float
    """Share of the intervals that have the number by all labels."""
    bias: float
    """Mean error of the corrected number."""
    error: float
    """Its standard deviation over draws."""
    without: float
    """Share of the draws without an interval."""


def choose(run: Sample, number: int, random: np.random.Generator) -> Drawn:
    """Draw as `hallulab annotate --next` does, with no label yet."""
    return _draw(plan_draw(run.hide({}), number), 1, random)


def choose_twice(run: Sample, number: int, random: np.random.Generator) -> Drawn:
    """Draw a half, and then the other half by what its labels tell."""
    first = choose(run, number // 2, random)
    return {**first, **_draw(plan_draw(run.hide(first), number - len(first)), 2, random)}


def draw_evenly(run: Sample, number: int, random: np.random.Generator) -> Drawn:
    """Draw with equal probability, so that each chatbot has labels enough to be corrected."""
    names = {turn.chatbot for turn in run.scored}
    while True:
        places = random.choice(len(run.scored), number, replace=False)
        bots = [run.scored[place].chatbot for place in places]
        if all(bots.count(name) >= LEAST_ANNOTATED for name in names):
            return {int(place): Draw(1, 0, number / len(run.scored)) for place in places}


def _draw(plan: DrawPlan, number: int, random: np.random.Generator) -> Drawn:
    return {place: Draw(number, cell.stratum, cell.propensity) for cell, place in draw_cells(plan, random)}


DESIGNS: dict[str, Design] = {
    "at random": draw_evenly,
    "chosen": choose,
    "chosen, in two halves": choose_twice,
}


def _generators(draws: int) -> Iterator[np.random.Generator]:
    return (np.random.default_rng((SEED, draw)) for draw in range(draws))


Corrected = tuple[float, tuple[float, float] | None]
"""Error of a corrected number, and the interval of that error."""


def estimate(run: Sample, drawn: Drawn) -> tuple[Panel, list[PPIEstimate]]:
    """Correct HPT-1 by labels: of all chatbots together, then of each."""
    known = [
        replace(turn, draw=drawn[at]) if at in drawn else replace(turn, annotated=None)
        for at, turn in enumerate(run.judged)
    ]
    panel = sum_judged_turns(known).panel(sorted({turn.chatbot for turn in run.judged}), None)
    *of_each, of_all = estimate_means(panel.looked_spans, panel.draws)
    return panel, [of_all, *of_each]


def correct(run: Sample, drawn: Drawn) -> list[Corrected]:
    """Correct HPT-1 by labels, likewise, and hold it against what all labels give."""
    names = [None, *sorted({turn.chatbot for turn in run.judged})]
    panel, estimates = estimate(run, drawn)
    totals = panel.looked_spans.sum(axis=0)
    found: list[Corrected] = []
    for at, (name, one) in enumerate(zip(names, estimates, strict=True)):
        error = estimate_drawn_error(totals, panel.draws, at - 1 if at else None)
        own = [turn.annotated or 0 for turn in run.judged if name in (None, turn.chatbot)]
        all_labels, value = sum(own) / len(own), one.value
        ci95 = None if error is None else compute_t_interval(value, error.error, error.freedom, "log")
        found.append(_compare(value, ci95, all_labels))
    return found


def correct_for_all(run: Sample, drawn: Drawn, true: float) -> Corrected:
    """Correct HPT-1 of all chatbots, and hold it against that of all personas that there could be."""
    value, ci95, _ = estimate_by_people(estimate(run, drawn)[1][0], share=False)
    return _compare(value, ci95, true)


def _compare(value: float, ci95: tuple[float, float] | None, true: float) -> Corrected:
    return value - true, None if ci95 is None else (ci95[0] - true, ci95[1] - true)


def summarize(found: Sequence[Corrected]) -> Outcome:
    """Summarize what many draws gave."""
    errors = np.array([error for error, _ in found])
    intervals = np.array([ci95 for _, ci95 in found if ci95 is not None]).reshape(-1, 2)
    if not len(intervals):
        return Outcome(np.nan, np.nan, float(errors.mean()), float(errors.std()), 1.0)
    return Outcome(
        width=float((intervals[:, 1] - intervals[:, 0]).mean()),
        covered=float(((intervals[:, 0] <= 0) & (intervals[:, 1] >= 0)).mean()),
        bias=float(errors.mean()),
        error=float(errors.std()),
        without=1 - len(intervals) / len(found),
    )


def read_sample(detector: str) -> Sample:
    """Return the turns of the data set gold that a detector scored."""
    conversations, verdicts, annotations = read_gold(detector)
    journals = Journals(conversations, verdicts)
    judged = collect_judged_turns(conversations, verdicts, annotations)[detector]
    return Sample(collect_scored_turns(journals, detector, annotations), judged)


def make_up(detector: tuple[float, float], rate: float, draw: int) -> Sample:
    """Make up a run of `CHATBOTS` chatbots, as benchmarks/corrected_coverage.py does."""
    random = np.random.default_rng((SEED, round(100 * rate), round(100 * detector[0]), draw))
    scored, judged = [], []
    for bot in "ab"[:CHATBOTS]:
        runs = made_up(random, 1, CONVERSATIONS, rate, detector)
        for person, depth in np.argwhere(runs.sentences[0] > 0).tolist():
            said, true = int(runs.said[0, person, depth]), int(runs.wrong[0, person, depth])
            scored.append(ScoredTurn(f"{bot}{person}", depth, bot, said, float(said), true))
            turn = JudgedTurn(bot, ("", f"p{person}"), 0, said > 0, said, 1, 0, true)
            judged.append(turn)
    return Sample(scored, judged)


def measure(run: Sample, number: int, design: Design, draws: int) -> list[Outcome]:
    """Draw labels of a run many times, and correct HPT-1 by them: of all chatbots together, then of each."""
    found = [correct(run, design(run, number, random)) for random in _generators(draws)]
    return [summarize(part) for part in zip(*found, strict=True)]


def lines(draws: int) -> Iterator[list[str]]:
    """Yield the rows of the table of the data set gold."""
    for detector in DETECTORS:
        run = read_sample(detector)
        plan = plan_draw(run.hide({}), LABELS)
        expected = {"at random": plan.random_width, "chosen": plan.width}
        for title, design in DESIGNS.items():
            together, *each = measure(run, LABELS, design, draws)
            own = 1 - sum(one.without for one in each) / len(each)
            width = format_number(expected.get(title), 2)
            yield [f"`{detector}`", title, width, *_format(together), f"{own:.0%}"]


def made_up_lines(draws: int) -> Iterator[list[str]]:
    """Yield the rows of the table of made-up runs: each draw is of another run."""
    for detector, rate in MADE_UP:
        runs = [make_up(detector, rate, draw) for draw in range(draws)]
        for title, design in DESIGNS.items():
            drawn = [
                design(run, MADE_UP_LABELS, random)
                for run, random in zip(runs, _generators(draws), strict=True)
            ]
            labelled = list(zip(runs, drawn, strict=True))
            found = summarize([correct(run, one)[0] for run, one in labelled])
            of_all = summarize([correct_for_all(run, one, truth(rate, share=False)) for run, one in labelled])
            yield [
                ", ".join(map(str, detector)),
                f"{truth(rate, share=False):.2f}",
                title,
                *_format(found),
                f"{of_all.width:.2f}",
                f"{of_all.covered:.1%}",
            ]


def _format(one: Outcome) -> list[str]:
    without = f"; {one.without:.1%} none" if one.without else ""
    return [f"{one.width:.2f}{without}", f"{one.covered:.1%}", f"{one.bias:+.3f}", f"{one.error:.3f}"]


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure and print; return the exit code."""
    parser = build_parser("label_next", __doc__)
    parser.add_argument("--draws", type=int, default=DRAWS, help=f"draws of labels (default: {DRAWS})")
    given = parser.parse_args(arguments)
    numbers = ["mean width", "coverage", "bias", "standard error"]
    print(
        *format_head(
            ["detector", f"{LABELS} labels", "expected width", *numbers, "chatbots with an interval"]
        ),
        sep="\n",
    )
    for line in lines(given.draws):
        print(format_row(line), flush=True)
    head = [
        "sensitivity, specificity",
        "true HPT-1",
        f"{MADE_UP_LABELS} labels",
        *numbers,
        "width, all personas",
        "its coverage",
    ]
    print("", *format_head(head), sep="\n")
    for line in made_up_lines(given.draws):
        print(format_row(line), flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
