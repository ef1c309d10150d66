"""How often a gate blocks unchanged builds, by baseline: `python -m benchmarks.gate_baselines`.

The table stands in docs/studies/gate.md. All builds of a chatbot are compared with one baseline, so they
share its luck. Runs are made up: a persona has a rate of hallucinations (a gamma distribution whose variance
is half the squared mean), and each turn of a run a Poisson number of that rate. Nothing changes from run to
run but the seeds. The test is that of the gate, one-sided at 2.5%. Seeded.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence

import numpy as np

from benchmarks.command import build_parser, format_head, format_row
from hallulab.simulator.statistics.differences import ALPHA, flip_signs
from hallulab.simulator.statistics.intervals import Floats

BASELINES, BUILDS = 120, 400
PERSONAS = (13, 36)
RATES = (0.4, 0.8)
TURNS = 2
TRIES = 5
"""Runs of which a lucky baseline is the best."""
_SHAPE = 2.0


def blocked(random: np.random.Generator, personas: int, hpt: float, builds: int, tries: int) -> float:
    """Return the share of unchanged builds that one baseline blocks, the best of so many runs."""
    rates = random.gamma(_SHAPE, hpt / _SHAPE, personas)
    runs = random.poisson(TURNS * rates, (tries, personas))
    baseline = runs[runs.sum(axis=1).argmin()]
    differences: Floats = (random.poisson(TURNS * rates, (builds, personas)) - baseline).T / TURNS
    p_values = np.array(flip_signs(differences))
    return float(((p_values < ALPHA) & (differences.sum(axis=0) > 0)).mean())


def lines(baselines: int, builds: int) -> Iterator[list[str]]:
    """Yield the rows of the table."""
    for personas in PERSONAS:
        for hpt in RATES:
            for tries in (1, TRIES):
                random = np.random.default_rng((personas, round(10 * hpt), tries))
                found = [blocked(random, personas, hpt, builds, tries) for _ in range(baselines)]
                shares = (np.mean(found), np.median(found), np.quantile(found, 0.9), np.max(found))
                made = "one run" if tries == 1 else f"the best of {tries} runs"
                yield [str(personas), f"{hpt}", made, *(f"{share:.1%}" for share in shares)]


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure and print; return the exit code."""
    parser = build_parser("gate_baselines", __doc__)
    parser.add_argument("--baselines", type=int, default=BASELINES, help=f"baselines (default: {BASELINES})")
    parser.add_argument("--builds", type=int, default=BUILDS, help=f"builds of each (default: {BUILDS})")
    given = parser.parse_args(arguments)
    head = ["personas", "HPT-1", "baseline", "mean", "median", "90% of baselines below", "worst"]
    print(*format_head(head), *map(format_row, lines(given.baselines, given.builds)), sep="\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
