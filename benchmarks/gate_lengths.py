"""How often the gate blocks an unchanged bot, and a worse one, where conversations differ in length.

    python -m benchmarks.gate_lengths

Personas have hallucinations at different rates (gamma, of shape 2; three of ten personas have none), and a
turn's number is that of Poisson. One chatbot under one detector, without the severity guard.
"""

from __future__ import annotations

import numpy as np

from hallulab.simulator.compare.gate_result import LEVEL
from hallulab.simulator.statistics.differences import compute_pseudo_values, flip_signs
from hallulab.simulator.statistics.intervals import Floats, Integers, Ratio

RUNS = 2_000
PERSONAS = (6, 13, 36)
RATES = (0.04, 0.1, 0.4, 1.2)
COLUMNS = (
    ("2", "2", 1.0),
    ("1 to 5", "1 to 5", 1.0),
    ("2", "5", 1.0),
    ("5", "2", 1.0),
    ("2", "2", 2.0),
    ("1 to 5", "1 to 5", 2.0),
)
"""Turns of the baseline, turns of the run, and how many times as many hallucinations the run has."""


def draw_turns(turns: str, personas: int, generator: np.random.Generator) -> Integers:
    """Draw the number of turns with each persona."""
    low, _, high = turns.partition(" to ")
    return generator.integers(int(low), int(high or low) + 1, personas)


def pair_ratios(found: Integers, turns: Integers) -> list[Ratio]:
    """Return hallucinations over turns of each persona."""
    return [Ratio(int(one), int(of)) for one, of in zip(found, turns, strict=True)]


def draw_values(
    personas: int, rate: float, column: tuple[str, str, float], generator: np.random.Generator
) -> Floats:
    """Draw a baseline and a run, and return the pseudo-values of their difference, shape (personas,)."""
    before, after, times = column
    own = rate * generator.gamma(2, 0.5, personas) * (generator.random(personas) >= 0.3) / 0.7
    old, new = (draw_turns(turns, personas, generator) for turns in (before, after))
    return compute_pseudo_values(
        pair_ratios(generator.poisson(own * times * new), new),
        pair_ratios(generator.poisson(own * old), old),
    )


def measure_blocked(personas: int, rate: float, column: tuple[str, str, float]) -> float:
    """Return the share of runs that the gate's test blocks."""
    generator = np.random.default_rng((personas, int(1000 * rate), COLUMNS.index(column)))
    values = np.stack([draw_values(personas, rate, column, generator) for _ in range(RUNS)], axis=1)
    is_worse = values.sum(axis=0) > 0
    return float(np.mean(is_worse & (np.array(flip_signs(values)) / 2 < LEVEL)))


def main() -> None:
    """Print the table."""
    for personas in PERSONAS:
        for rate in RATES:
            shares = [f"{measure_blocked(personas, rate, column):.1%}" for column in COLUMNS]
            print(f"| {personas} | {rate:g} | {' | '.join(shares)} |", flush=True)


if __name__ == "__main__":
    main()
