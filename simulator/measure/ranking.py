"""The probability that each chatbot has the lowest corrected number."""

from __future__ import annotations

import numpy as np

from hallulab.simulator.measure.spreading import draw_weighed_sums
from hallulab.simulator.measure.statistics import RESAMPLES, Floats, compute_percentile_interval

LEAD = 0.975
"""Probability from which a chatbot is said to be best: of two equal ones, each reaches it in 2.5% of runs."""


def compute_best_probabilities(replicates: Floats) -> list[float] | None:
    """Return for each chatbot the share of replicates in which its number is lowest; ties are shared.

    None where too many replicates are undefined.

    Args:
        replicates: numbers of each chatbot, shape (replicates, chatbots); NaN where undefined.
    """
    defined = replicates[~np.isnan(replicates).any(axis=1)]
    if compute_percentile_interval(replicates.sum(axis=1)) is None or not len(defined):
        return None
    lowest = defined == defined.min(axis=1, keepdims=True)
    return [float(share) for share in (lowest / lowest.sum(axis=1, keepdims=True)).mean(axis=0)]


def draw_weighed_totals(sums: Floats) -> Floats:
    """Return totals under random weights of clusters, the same for all chatbots.

    Args:
        sums: shape (clusters, chatbots, values).

    Returns:
        shape (`RESAMPLES`, chatbots, values).
    """
    totals = draw_weighed_sums("personas", sums.reshape(len(sums), -1))
    return totals.reshape(RESAMPLES, *sums.shape[1:])
