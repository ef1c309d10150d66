"""The cluster bootstrap, for numbers without a formula: medians, distances of samples, corrected counts.

Its percentiles are too narrow with few clusters; `intervals` has what is better for means, shares and areas.
"""

from __future__ import annotations

import numpy as np

from hallulab.simulator.statistics.intervals import Bounds, Floats, Integers

RESAMPLES = 10_000
"""Replicates of a corrected number."""
UNDEFINED = 0.05
"""Largest share of undefined replicates; with more, there is no interval."""
_SEED = 20_250
_TIE = 1e-12
"""Bounds closer than this are the same."""


def draw_cluster_weights(clusters: int, resamples: int) -> Integers:
    """Draw how often a bootstrap takes each cluster: shape (resamples, clusters), rows sum to `clusters`.

    Equal arguments give equal weights.
    """
    generator = np.random.default_rng(_SEED)
    return generator.multinomial(clusters, np.full(clusters, 1.0 / clusters), size=resamples)


def compute_percentile_interval(values: Floats) -> Bounds | None:
    """Compute the 95% percentile interval of bootstrap replicates, without undefined ones (NaN).

    None when more than `UNDEFINED` of them are undefined: the others are no fair sample then. None also where
    both bounds are the same: such an interval would claim a certainty that nobody has.
    """
    if not is_mostly_defined(values):
        return None
    low, high = np.quantile(values[~np.isnan(values)], [0.025, 0.975])
    return (float(low), float(high)) if high - low > _TIE else None


def is_mostly_defined(values: Floats) -> bool:
    """Return whether at most `UNDEFINED` of bootstrap replicates are undefined (NaN)."""
    return bool(np.isnan(values).mean() <= UNDEFINED)
