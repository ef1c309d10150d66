"""How often intervals and tests of numbers as counted are right: `python -m benchmarks.coverage`.

The tables stand in docs/studies/validity.md (`--docs` puts them there). Runs are made up by seed, and their
truth is known:

- One to five turns: sentences of turns are hallucinated at a rate that differs between personas, as
  `benchmarks.corrected_coverage` makes them up.
- Two turns: a persona's rate is the HPT times two gamma variables, one that the chatbots share (variance 0.2)
  and an own one (0.32); hallucinations of a turn are Poisson.
- Uneven: four of five personas have none, the others five times as many.

A cell of 2,000 runs has a standard error of half a point where 95% are right.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from benchmarks.command import build_parser, format_table, get_exit_code, write_between
from benchmarks.corrected_coverage import made_up
from hallulab.simulator.statistics.differences import ALPHA, Difference, compare_all_pairs
from hallulab.simulator.statistics.intervals import Bounds, Floats, Kind, Ratio, compute_interval
from hallulab.simulator.statistics.planning import find_least_pairs, plan_pairs
from hallulab.simulator.statistics.sequence import MARGIN

RUNS, PAIRS_OF_RUNS = 2_000, 4_000
PLANNED = 4
"""One in so many runs is planned, which takes longest."""
HPTS = (0.04, 0.1, 0.4, 1.2)
"""True hallucinations per turn."""
ACCURACIES = (0.5, 0.8, 0.95)
"""True token accuracies."""
PERSONAS = (6, 8, 13, 20, 36, 100)
BEGINS, ENDS = "<!-- coverage begins -->\n", "<!-- coverage ends -->\n"
_SHARED, _OWN = 0.2, 0.32
"""Variances of what personas' rates are multiplied by."""
_TOGETHER = 200
"""Runs whose signs are flipped together, for memory."""

Counts = tuple[Floats, Floats]
"""Numerators and denominators of personas, shape (runs, personas)."""


def make_gamma(random: np.random.Generator, shape: tuple[int, ...], variance: float) -> Floats:
    """Draw numbers with a mean of 1."""
    return random.gamma(1 / variance, variance, shape)


def make_counts(
    random: np.random.Generator, rates: Floats, hpt: float, turns: int, *, uneven: bool = False
) -> Counts:
    """Make up one chatbot's hallucinations.

    Args:
        rates: what the chatbots of a persona share, shape (runs, personas).
        hpt: the true HPT-1.
        turns: those of each persona.
        uneven: whether a fifth of the personas has all hallucinations.
    """
    own = 5.0 * (random.random(rates.shape) < 0.2) if uneven else make_gamma(random, rates.shape, _OWN)
    return random.poisson(turns * hpt * rates * own).astype(np.float64), np.full(rates.shape, float(turns))


def make_tokens(random: np.random.Generator, runs: int, personas: int, accuracy: float) -> Counts:
    """Make up tokens outside flagged spans, and all: 12 sentences of 8 to 25 tokens of each persona."""
    rate = random.beta(9 * (1 - accuracy), 9 * accuracy, (runs, personas, 1))
    lengths = random.integers(8, 26, (runs, personas, 12))
    right = random.random(lengths.shape) >= rate
    return (lengths * right).sum(axis=2).astype(np.float64), lengths.sum(axis=2).astype(np.float64)


def list_ratios(counts: Counts) -> list[list[Ratio]]:
    """Return the ratios of each run's personas."""
    return [
        [Ratio(int(over), int(under)) for over, under in zip(*run, strict=True)]
        for run in zip(*counts, strict=True)
    ]


@dataclass(frozen=True)
class Hits:
    """How often intervals have the truth, and how wide they are."""

    covered: float
    """Share of the intervals that there are."""
    width: float
    """Median."""
    without: float
    """Share of the runs without one."""

    def __str__(self) -> str:
        none = f"; {self.without:.1%} none" if self.without >= 0.0005 else ""
        return f"{self.covered:.1%}; {self.width:.2f}{none}"


def count_hits(bounds: Sequence[Bounds | None], true: float) -> Hits:
    """Count the intervals that have the truth."""
    found = np.array([one for one in bounds if one is not None]).reshape(-1, 2)
    covered = (found[:, 0] <= true + 1e-12) & (true - 1e-12 <= found[:, 1])
    width = float(np.median(found[:, 1] - found[:, 0]))
    return Hits(float(covered.mean()), width, 1 - len(found) / len(bounds))


def measure_intervals(counts: Counts, kind: Kind, true: float) -> Hits:
    """Measure the intervals of one number."""
    return count_hits([compute_interval(sample, kind) for sample in list_ratios(counts)], true)


def make_lengths(runs: int, personas: int, hpt: float) -> Counts:
    """Make up conversations of one to five turns."""
    there = made_up(np.random.default_rng((personas, round(1000 * hpt))), runs, personas, hpt / 4, (1.0, 1.0))
    return there.wrong.sum(axis=2).astype(np.float64), (there.sentences > 0).sum(axis=2).astype(np.float64)


def make_evenly(runs: int, personas: int, hpt: float, *, uneven: bool = False) -> Counts:
    """Make up conversations of two turns."""
    random = np.random.default_rng((personas, round(1000 * hpt), 1 + uneven))
    return make_counts(random, make_gamma(random, (runs, personas), _SHARED), hpt, 2, uneven=uneven)


def tabulate_intervals(runs: int, personas: Sequence[int] = PERSONAS) -> Iterator[list[str]]:
    """Yield the rows of intervals of HPT-1, then those of TokAcc-1."""
    for number in personas:
        cells = [measure_intervals(make_lengths(runs, number, hpt), "rate", hpt) for hpt in HPTS]
        yield ["HPT-1, one to five turns", str(number), *map(str, cells)]
    for uneven in (False, True):
        for number in personas:
            cells = [
                measure_intervals(make_evenly(runs, number, hpt, uneven=uneven), "rate", hpt) for hpt in HPTS
            ]
            yield ["HPT-1, uneven" if uneven else "HPT-1, two turns", str(number), *map(str, cells)]


def tabulate_shares(runs: int, personas: Sequence[int] = PERSONAS) -> Iterator[list[str]]:
    """Yield the rows of intervals of TokAcc-1."""
    for number in personas:
        random = np.random.default_rng((number, 7))
        cells = [
            measure_intervals(make_tokens(random, runs, number, accuracy), "share", accuracy)
            for accuracy in ACCURACIES
        ]
        yield [str(number), *map(str, cells)]


@dataclass(frozen=True)
class Pairing:
    """Two chatbots that are compared."""

    turns: tuple[int, int]
    """Turns of a persona with each."""
    times: float = 1.0
    """How many times the first one's HPT-1 the second one has."""
    uneven: bool = False
    """Whether a fifth of the personas has all hallucinations of the first."""


PAIRINGS: Mapping[str, Pairing] = {
    "equal, two turns": Pairing((2, 2)),
    "equal, two turns against five": Pairing((2, 5)),
    "equal, one uneven": Pairing((2, 2), uneven=True),
    "the second twice as many, two turns": Pairing((2, 2), times=2),
}


def compare_runs(pairing: Pairing, runs: int, personas: int, hpt: float) -> list[Difference]:
    """Make up runs and compare the two chatbots of each."""
    random = np.random.default_rng((personas, round(1000 * hpt), *pairing.turns, round(pairing.times)))
    rates = make_gamma(random, (runs, personas), _SHARED)
    first = make_counts(random, rates, hpt, pairing.turns[0], uneven=pairing.uneven)
    second = make_counts(random, rates, hpt * pairing.times, pairing.turns[1])
    kind: Kind = "rate"
    samples = [(one, two, kind) for one, two in zip(list_ratios(first), list_ratios(second), strict=True)]
    parts = (samples[start : start + _TOGETHER] for start in range(0, runs, _TOGETHER))
    return [found for part in parts for found in compare_all_pairs(part)]


def tabulate_differences(runs: int, personas: Sequence[int] = PERSONAS) -> Iterator[list[str]]:
    """Yield the rows of differences: intervals, and how often the test rejects."""
    for name, pairing in PAIRINGS.items():
        for number in personas:
            cells = []
            for hpt in HPTS:
                found = compare_runs(pairing, runs, number, hpt)
                hits = count_hits([one.ci95 for one in found], hpt * (1 - pairing.times))
                rejected = sum(one.p_value is not None and one.p_value < ALPHA for one in found) / runs
                cells.append(f"{hits}; {rejected:.1%}")
            yield [name, str(number), *cells]


def tabulate_plans(runs: int, personas: Sequence[int] = PERSONAS) -> Iterator[list[str]]:
    """Yield the rows of plans for a difference of `MARGIN`: personas needed, and plans that say fewer."""
    for hpt in HPTS:
        random = np.random.default_rng((3, round(1000 * hpt)))
        spread = np.std(np.subtract(*_plan_counts(random, 1, 400_000, hpt)) / 2)
        needed = find_least_pairs(MARGIN / float(spread))
        cells = []
        for number in personas:
            turns = np.full((runs, number), 2.0)
            both = (list_ratios((counts, turns)) for counts in _plan_counts(random, runs, number, hpt))
            plans = [plan_pairs(*pair).pairs for pair in zip(*both, strict=True)]
            planned = [pairs for pairs in plans if pairs is not None]
            fewer = sum(pairs < needed for pairs in planned) / max(len(planned), 1)
            none = f"; {1 - len(planned) / runs:.1%} none" if len(planned) < runs else ""
            cells.append(f"{np.median(planned):.0f}; {fewer:.1%}{none}" if planned else "none")
        yield [f"{hpt:g}", f"{needed:,}", *cells]


def _plan_counts(random: np.random.Generator, runs: int, personas: int, hpt: float) -> tuple[Floats, Floats]:
    rates = make_gamma(random, (runs, personas), _SHARED)
    return make_counts(random, rates, hpt, 2)[0], make_counts(random, rates, hpt, 2)[0]


def build_page(runs: int, pairs_of_runs: int) -> str:
    """Return the tables of docs/studies/validity.md."""
    hpts = [f"HPT {hpt:g}" for hpt in HPTS]
    personas = [f"{number} personas" for number in PERSONAS]
    parts = [
        f"95% intervals of HPT-1: how many have the truth, and their median width ({runs:,} runs a cell).",
        format_table(["data", "personas", *hpts], list(tabulate_intervals(runs))),
        f"The same of TokAcc-1 ({runs:,} runs a cell).",
        format_table(
            ["personas", *(f"TokAcc {share:g}" for share in ACCURACIES)], list(tabulate_shares(runs))
        ),
        "95% intervals of the difference of two chatbots on the same personas: how many have the truth, "
        f"their median width, and how often the test has p < 0.05 ({pairs_of_runs:,} runs a cell).",
        format_table(["chatbots", "personas", *hpts], list(tabulate_differences(pairs_of_runs))),
        f"Personas that tell two chatbots apart which differ by {MARGIN:g} a turn, with a chance of 80%: how "
        "many are needed; by personas measured, the median plan and how many plans say fewer than needed "
        f"({runs // PLANNED:,} runs a cell). Of normal numbers 20% would; counts are skewed.",
        format_table(["HPT", "needed", *personas], list(tabulate_plans(runs // PLANNED))),
    ]
    return "\n\n".join(parts) + "\n"


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure, print and write; return the exit code, as of `hallulab`."""
    parser = build_parser("coverage", __doc__)
    parser.add_argument("--runs", type=int, default=RUNS, help=f"runs a cell (default: {RUNS})")
    parser.add_argument(
        "--pairs-of-runs", type=int, default=PAIRS_OF_RUNS, help=f"of differences (default: {PAIRS_OF_RUNS})"
    )
    parser.add_argument("--docs", type=Path, help="put the tables into this page, between its marks")
    given = parser.parse_args(arguments)

    def run() -> None:
        tables = build_page(given.runs, given.pairs_of_runs)
        print(tables, end="")
        if given.docs is not None:
            write_between(given.docs, BEGINS, ENDS, tables)

    return get_exit_code(run)


if __name__ == "__main__":
    sys.exit(main())
