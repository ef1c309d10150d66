"""Split the variance of a mean over conversations into that of personas and that of seeds.

A conversation's number is taken for the sum of an effect of its persona and one of its seed, both random. The
analysis of variance gives unbiased estimates of their variances (Searle, Casella and McCulloch 1992, Variance
Components, section 3.6): with N conversations of P personas, n of them with one persona,

    seeds    = Σ (x - mean of its persona)² / (N - P)
    personas = (Σ n (mean of the persona - mean)² / (P - 1) - seeds) / n0,  n0 = (N - Σ n² / N) / (P - 1)

A negative estimate counts as 0. The mean over all has the variance personas / P + seeds / N, if each persona
has as many seeds. More seeds of the same personas lessen its second part alone.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Hashable, Iterable

import numpy as np


def seed_share(values: Iterable[tuple[Hashable, float]]) -> float | None:
    """Return the share of the mean's variance that more seeds of the same personas remove at most.

    None with fewer than two personas, where none has two seeds, and where nothing varies.

    >>> seed_share([("asha", 0.0), ("asha", 2.0), ("ravi", 4.0), ("ravi", 6.0)])
    0.125

    Args:
        values: (persona, number of one conversation).
    """
    by_persona: dict[Hashable, list[float]] = defaultdict(list)
    for persona, value in values:
        by_persona[persona].append(value)
    counts = np.array([len(own) for own in by_persona.values()], dtype=np.float64)
    personas, number = len(counts), counts.sum()
    if personas < 2 or number == personas:
        return None
    means = np.array([np.mean(own) for own in by_persona.values()])
    within = sum(float(np.sum((np.array(own) - np.mean(own)) ** 2)) for own in by_persona.values())
    of_seeds = within / (number - personas)
    between = float(np.sum(counts * (means - counts @ means / number) ** 2)) / (personas - 1)
    usual = (number - counts @ counts / number) / (personas - 1)
    of_personas = max(0.0, (between - of_seeds) / usual)
    of_mean = of_personas / personas + of_seeds / number
    return float(of_seeds / number / of_mean) if of_mean > 1e-12 else None
