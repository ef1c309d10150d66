"""How often intervals of corrected numbers have the true ones: `python -m benchmarks.corrected_coverage`.

The output stands in docs/studies/corrected.md; numbers as counted are in `benchmarks.coverage`. Runs are made
up: conversations of one to five turns of two to six sentences, with a rate of hallucinated sentences that
differs between conversations (a beta distribution; two sentences of a conversation correlate by 0.15). A
detector finds a hallucinated sentence with its sensitivity, and flags a clean one with 1 - its specificity.
For each run, the truth is known: the mean over all conversations that there could be. Seeded; a cell of 600
runs has a standard error of 0.9 points.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import product

import numpy as np

from benchmarks.command import build_parser, format_head, format_row
from hallulab.simulator.metrics.corrected_pairs import (
    compare_estimates,
    estimate_by_labels,
    estimate_by_rates,
    find_best,
)
from hallulab.simulator.metrics.corrections import Number, estimate_by_known, estimate_by_people
from hallulab.simulator.metrics.known_errors import build_errors
from hallulab.simulator.statistics.intervals import Floats, Integers
from hallulab.simulator.statistics.prediction_powered import estimate_means
from hallulab.simulator.statistics.prevalence import DetectorErrors, solve_by_flags

RUNS = 600
CONVERSATIONS = (10, 20, 50, 200)
RATES = (0.1, 0.3)
"""Share of the sentences that are hallucinated."""
DETECTORS = ((0.3, 0.99), (0.6, 0.95), (0.9, 0.8))
"""Sensitivity and specificity at sentences."""
GROUPS, OF_GROUP = 40, 10
"""Source texts of the calibration; clean and wrong sentences of each."""
MOST_TURNS = 5
LENGTHS = (2, 3, 4, 5, 6)
"""Sentences of a turn, equally likely."""
CHATBOTS = (2, 5)
COMPARED = (6, 10, 20, 50)
"""Conversations of each chatbot, with other personas each."""
EQUAL_RATES = (0.01, 0.025, 0.1, 0.3)
"""Of equal chatbots: HPT-1 of 0.04, 0.1, 0.4 and 1.2."""
COMPARED_RUNS = 4000
_CORRELATION = 0.15
_OF_GROUPS = 0.05
"""Correlation of what the detector says of two sentences of a source text."""


@dataclass(frozen=True)
class MadeUpRuns:
    """Made-up runs, shape (runs, conversations, `MOST_TURNS`); a turn without sentences does not exist."""

    sentences: Integers
    wrong: Integers
    """Hallucinated sentences."""
    said: Integers
    """Sentences that the detector flags."""


def made_up(
    random: np.random.Generator, runs: int, conversations: int, rate: float, detector: tuple[float, float]
) -> MadeUpRuns:
    """Make up runs of a chatbot."""
    shape = (runs, conversations)
    scale = (1 - _CORRELATION) / _CORRELATION
    rates = random.beta(rate * scale, (1 - rate) * scale, shape)[..., None]
    there = np.arange(MOST_TURNS) < random.integers(1, MOST_TURNS + 1, shape)[..., None]
    sentences = random.integers(LENGTHS[0], LENGTHS[-1] + 1, (*shape, MOST_TURNS)) * there
    wrong = random.binomial(sentences, rates)
    sensitivity, specificity = detector
    said = random.binomial(wrong, sensitivity) + random.binomial(sentences - wrong, 1 - specificity)
    return MadeUpRuns(sentences, wrong, said)


def annotated(random: np.random.Generator, runs: MadeUpRuns, *, by_turn: bool, share: bool = False) -> Floats:
    """Return the sums of prediction-powered inference, (runs, conversations, 7), with a half annotated.

    Args:
        by_turn: whether turns are drawn; else whole conversations are.
        share: whether the number is the share of hallucinated turns; else it is HPT-1.
    """
    there = runs.sentences > 0
    if by_turn:
        looked = there & (random.random(there.shape) < 0.5)
    else:
        chosen = random.random(there.shape[:2]).argsort(axis=1) < there.shape[1] // 2
        looked = there & chosen[..., None]
    f, y = runs.said.astype(float), runs.wrong.astype(float)
    if share:
        f, y = np.minimum(f, 1), np.minimum(y, 1)
    sums = (there, f, f**2, looked, y * looked, f * looked, y * f * looked)
    return np.stack([each.sum(axis=2) for each in sums], axis=-1).astype(np.float64)


def calibration(random: np.random.Generator, detector: tuple[float, float]) -> DetectorErrors:
    """Make up what a calibration says of a detector."""
    scale = (1 - _OF_GROUPS) / _OF_GROUPS
    of_clean, of_wrong = (
        random.binomial(OF_GROUP, random.beta(share * scale, (1 - share) * scale, GROUPS))
        for share in (1 - detector[1], detector[0])
    )
    every = np.full(GROUPS, OF_GROUP)
    units = np.stack([every, of_clean, every, of_wrong, every], axis=-1)
    return build_errors("calibration", units[:, [0, 1, 0, 2, 3, 2]].tolist(), units.tolist())


def planted(random: np.random.Generator, detector: tuple[float, float]) -> DetectorErrors:
    """Make up what planted errors say of a detector, in replies of two sentences, as twins are short."""
    scale = (1 - _OF_GROUPS) / _OF_GROUPS
    alarms, found = (
        random.beta(share * scale, (1 - share) * scale, (GROUPS, 1))
        for share in (1 - detector[1], detector[0])
    )
    of_clean = random.binomial(2, alarms, (GROUPS, OF_GROUP))
    of_wrong = random.binomial(1, alarms, (GROUPS, OF_GROUP)) + random.binomial(1, found, (GROUPS, OF_GROUP))
    every, sentences = np.full(GROUPS, OF_GROUP), np.full(GROUPS, 2 * OF_GROUP)
    replies = [every, (of_clean > 0).sum(axis=1), sentences, every, (of_wrong > 0).sum(axis=1), sentences]
    units = [sentences, of_clean.sum(axis=1), every, of_wrong.sum(axis=1), sentences]
    return build_errors("planted errors", np.stack(replies, -1).tolist(), np.stack(units, -1).tolist())


Method = Callable[[np.random.Generator, MadeUpRuns, tuple[float, float]], list[Number]]
"""What corrects a number of runs, given the detector."""


def by_annotations(*, by_turn: bool, share: bool = False) -> Method:
    """Return the correction by a half of the turns, or conversations."""

    def correct(random: np.random.Generator, runs: MadeUpRuns, detector: tuple[float, float]) -> list[Number]:
        rows = annotated(random, runs, by_turn=by_turn, share=share)
        return [estimate_by_people(estimate_means(each[:, None])[0], share=share) for each in rows]

    return correct


def by_calibration(
    random: np.random.Generator, runs: MadeUpRuns, detector: tuple[float, float]
) -> list[Number]:
    """Correct the HPT-1 of runs by the equation of Rogan and Gladen, each with its own calibration."""
    return [
        estimate_by_known(each, calibration(random, detector), share=False) for each in count_sentences(runs)
    ]


def by_planted_errors(*, share: bool) -> Method:
    """Return the correction by planted errors, measured for each run."""

    def correct(random: np.random.Generator, runs: MadeUpRuns, detector: tuple[float, float]) -> list[Number]:
        rows = count_sentences(runs, share=share)
        return [estimate_by_known(each, planted(random, detector), share=share) for each in rows]

    return correct


def count_sentences(runs: MadeUpRuns, *, share: bool = False) -> Floats:
    """Return turns, sentences and flagged ones, or flagged turns: shape (runs, conversations, 3)."""
    there = runs.sentences > 0
    said = np.minimum(runs.said, 1) if share else runs.said
    columns = [each.sum(axis=2) for each in (there, runs.sentences, said)]
    return np.stack(columns, axis=-1).astype(np.float64)


SHARES = ("PPI++, share of turns", "planted errors, share of turns")
METHODS: dict[str, Method] = {
    "PPI++, turns annotated": by_annotations(by_turn=True),
    "PPI++, conversations annotated": by_annotations(by_turn=False),
    "calibration": by_calibration,
    SHARES[0]: by_annotations(by_turn=True, share=True),
    "planted errors": by_planted_errors(share=False),
    SHARES[1]: by_planted_errors(share=True),
}


def truth(rate: float, *, share: bool) -> float:
    """Return the true HPT-1, or share of turns with a hallucinated sentence."""
    if not share:
        return rate * sum(LENGTHS) / len(LENGTHS)
    scale = (1 - _CORRELATION) / _CORRELATION
    clean, every = (1 - rate) * scale, scale
    none = [
        math.exp(math.lgamma(clean + n) - math.lgamma(clean) + math.lgamma(every) - math.lgamma(every + n))
        for n in LENGTHS
    ]
    return 1 - sum(none) / len(none)


def covered(numbers: Sequence[Number], true: float) -> tuple[float | None, float | None, float]:
    """Return the share of intervals that have the truth, their median width, and the share without one."""
    found = [number.ci95 for number in numbers if number.ci95 is not None]
    without = 1 - len(found) / len(numbers)
    if not found:
        return None, None, without
    share = sum(low <= true <= high for low, high in found) / len(found)
    return share, float(np.median([high - low for low, high in found])), without


def lines(runs: int, conversations: Sequence[int] = CONVERSATIONS) -> Iterator[list[str]]:
    """Yield the rows of the table of coverage."""
    for number, rate, detector in product(conversations, RATES, DETECTORS):
        cells = []
        for place, (name, method) in enumerate(METHODS.items()):
            random = np.random.default_rng((number, round(100 * rate), round(100 * detector[0]), place))
            there = made_up(random, runs, number, rate, detector)
            numbers = method(random, there, detector)
            share, width, without = covered(numbers, truth(rate, share=name in SHARES))
            if share is None or width is None:
                cells.append("none")
            else:
                cells.append(f"{share:.1%}; {width:.2f}" + (f"; {without:.1%} none" if without else ""))
        yield [str(number), f"{truth(rate, share=False):.1f}", f"{detector[0]}, {detector[1]}", *cells]


def false_leads(
    runs: int, conversations: int, chatbots: int, rate: float, detector: tuple[float, float]
) -> tuple[float, float]:
    """Return the shares of runs in which one of equal chatbots is said to be best.

    By annotations of a half of the turns, and by a calibration. The chatbots have nothing in common, as if
    personas did not matter: so differences are largest.
    """
    random = np.random.default_rng((conversations, chatbots, round(1000 * rate), round(100 * detector[0])))
    made = [made_up(random, runs, conversations, rate, detector) for _ in range(chatbots)]
    labelled = np.stack([annotated(random, each, by_turn=True) for each in made], axis=2)
    units = np.stack([count_sentences(each) for each in made], axis=2)
    names = [str(number) for number in range(chatbots)]
    leads = np.zeros(2)
    for looked, said in zip(labelled, units, strict=True):
        found = estimate_by_labels(looked), estimate_by_rates(said, calibration(random, detector).unit_rates)
        leads += [one is not None and find_best(compare_estimates(one, names)) is not None for one in found]
    by_labels, by_rates = leads / runs
    return float(by_labels), float(by_rates)


def lead_lines(runs: int) -> Iterator[list[str]]:
    """Yield the rows of the table of false leads, with a column for each number of conversations."""
    for chatbots, rate, detector in product(CHATBOTS, EQUAL_RATES, DETECTORS):
        found = [false_leads(runs, number, chatbots, rate, detector) for number in COMPARED]
        cells = [f"{by_labels:.1%}; {by_rates:.1%}" for by_labels, by_rates in found]
        hpt = truth(rate, share=False)
        yield [str(chatbots), f"{hpt:.2g}", f"{detector[0]}, {detector[1]}", *cells]


def share_lines() -> Iterator[list[str]]:
    """Yield the rows of the table of the share by planted errors, without false alarms and without noise."""
    for hpt, found in product((0.4, 1.2, 2.0), (0.3, 0.6, 0.9)):
        cells = []
        for pass_all in (lambda mean: math.exp(-mean), lambda mean: 1 / (1 + mean)):
            true, flagged = 1 - pass_all(hpt), 1 - pass_all(found * hpt)
            share = solve_by_flags(np.array([1.0, 1.0, flagged]), np.array([0.0, found]))
            cells.append(f"{true:.2f}; {min(flagged / found, 1):.2f}; {share:.2f}")
        yield [f"{hpt}", f"{found}", *cells]


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure and print; return the exit code."""
    parser = build_parser("corrected_coverage", __doc__)
    parser.add_argument("--runs", type=int, default=RUNS, help=f"runs a cell (default: {RUNS})")
    parser.add_argument(
        "--compared-runs",
        type=int,
        default=COMPARED_RUNS,
        help=f"runs a cell of the table of equal chatbots (default: {COMPARED_RUNS})",
    )
    given = parser.parse_args(arguments)
    head = ["conversations", "true HPT-1", "sensitivity, specificity", *METHODS]
    print(*format_head(head), sep="\n")
    for line in lines(given.runs):
        print(format_row(line), flush=True)
    columns = [f"{number} conversations each" for number in COMPARED]
    head = ["equal chatbots", "true HPT-1", "sensitivity, specificity", *columns]
    print("", *format_head(head), sep="\n")
    for line in lead_lines(given.compared_runs):
        print(format_row(line), flush=True)
    head = ["errors a turn", "of which flagged", "Poisson", "crowded"]
    print("", *format_head(head), *map(format_row, share_lines()), sep="\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
