"""How often a best chatbot is named where none is better: `python -m benchmarks.personas [--runs N]`.

The output stands in docs/studies/methods.md. Experiments are made up. Each persona has a rate of
hallucinations of
its own with each chatbot, drawn from the same gamma distribution for all chatbots: none is better. Each seed
of a persona is a conversation of three turns with that rate. All goes through the code of the report. Beside
it, the same conversations are counted as if each seed were a persona of its own: the report did so before.
Seeded; a share of 400 runs near 5% has a standard error of 1.1 points.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence

import numpy as np

from benchmarks.command import build_parser, format_head, format_row
from hallulab.simulator.metrics.comparisons import compare
from hallulab.simulator.metrics.findings import build_findings
from hallulab.simulator.metrics.hallucinations import Tally
from hallulab.simulator.metrics.results import build_rows
from hallulab.simulator.metrics.run_sums import Key, sum_tallies
from hallulab.simulator.metrics.spending import sum_calls

RUNS = 400
CELLS = ((2, 10), (6, 1), (6, 10), (12, 1), (12, 5))
"""Personas and seeds of each."""
CHATBOTS = ("a", "b", "c")
TURNS = 3
RATE, SHAPE = 0.5, 1.0
"""Mean hallucinations a turn, and the shape of their gamma distribution: its deviation is the mean, too."""


Tallies = dict[Key, tuple[Tally, ...]]
"""Tallies by chatbot and detector."""


def make_counts(random: np.random.Generator, personas: int, seeds: int) -> np.ndarray:
    """Return hallucinations of made-up conversations, shape (chatbots, personas, seeds)."""
    rates = random.gamma(SHAPE, RATE / SHAPE, (len(CHATBOTS), personas, 1))
    return random.poisson(np.broadcast_to(rates * TURNS, (len(CHATBOTS), personas, seeds)))


def make_tallies(counts: np.ndarray, *, seeds_are_personas: bool) -> Tallies:
    """Return the tallies of made-up conversations under one detector."""
    return {
        (chatbot, "d"): tuple(
            _tally(f"{persona}-{seed}" if seeds_are_personas else f"{persona}", seed, int(own[persona, seed]))
            for persona, seed in np.ndindex(own.shape)
        )
        for chatbot, own in zip(CHATBOTS, counts, strict=True)
    }


def _tally(persona: str, seed: int, hallucinations: int) -> Tally:
    return Tally(
        conversation=f"{persona}/{seed}",
        pairing=("s", persona, seed),
        branched_at=None,
        turns=TURNS,
        scored_turns=TURNS,
        failed=0,
        abstained=0,
        not_localised=0,
        flagged_turns=0,
        hallucinations=hallucinations,
        unlocated=0,
        tokens=1,
        flagged_tokens=0,
        answers=TURNS,
        declines=0,
        chatbot_calls=0,
        chatbot_tokens=0,
        chatbot_untold=0,
        spent=sum_calls([]),
    )


def names_a_best(tallies: Tallies) -> bool:
    """Return whether the report would name a best chatbot."""
    sums = sum_tallies(tallies)
    [found] = build_findings(sums, build_rows(sums), compare(sums, CHATBOTS, ["d"]))
    return found.best is not None


def count_named(runs: int, personas: int, seeds: int, *, seeds_are_personas: bool) -> int:
    """Return in how many made-up experiments a best chatbot is named."""
    random = np.random.default_rng((31, personas, seeds))
    made = (make_counts(random, personas, seeds) for _ in range(runs))
    return sum(names_a_best(make_tallies(each, seeds_are_personas=seeds_are_personas)) for each in made)


def lines(runs: int, cells: Sequence[tuple[int, int]] = CELLS) -> Iterator[str]:
    """Yield the table's lines in Markdown."""
    columns = ("personas", "seeds of each", "a best one is named", "with seeds counted as personas")
    yield from format_head(columns)
    for personas, seeds in cells:
        named, before = (
            count_named(runs, personas, seeds, seeds_are_personas=counted) / runs for counted in (False, True)
        )
        yield format_row([str(personas), str(seeds), f"{named:.1%}", f"{before:.1%}"])


def main(arguments: Sequence[str] | None = None) -> int:
    """Print the table; return the exit code."""
    parser = build_parser("personas", __doc__)
    parser.add_argument("--runs", type=int, default=RUNS)
    for line in lines(parser.parse_args(arguments).runs):
        print(line, flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
