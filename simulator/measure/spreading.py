"""What the intervals of corrected numbers share: errors by leaving clusters out, scales, weights.

A sum over few personas is skewed: most have few hallucinations, some have many. An interval that is
symmetric about the estimate, or has the percentiles of a bootstrap, then lies too low. So a number is moved
by standard errors on the scale of its logarithm, a share on that of the arcsine of its root, with the
quantiles of Student's t. `python -m benchmarks.coverage` measures how often such intervals have the truth.
"""

from __future__ import annotations

from typing import Literal

import numpy as np

from hallulab.simulator.measure.statistics import RESAMPLES, Floats

_SEED = 1_978
_CELLS = 4_000_000
"""Largest number of weights in memory at once."""


def compute_jackknife_error(values: Floats) -> float:
    """Compute the standard error of an estimate from its values without each cluster in turn.

    Efron and Stein 1981, The jackknife estimate of variance, Annals of Statistics 9.
    """
    clusters = len(values)
    return float(np.sqrt((clusters - 1) / clusters * ((values - values.mean()) ** 2).sum()))


def move_by_errors(value: float, error: float, steps: Floats, *, share: bool) -> Floats:
    """Move a number by so many standard errors on its scale: the logarithm or, of a share, arcsine of root.

    A number at the end of its range has no such scale and stays.
    """
    if value <= 0 or (share and value >= 1):
        return np.full(len(steps), value)
    if not share:
        return value * np.exp(steps * error / value)
    angles = np.arcsin(np.sqrt(value)) + steps * error / (2 * np.sqrt(value * (1 - value)))
    shares: Floats = np.sin(np.clip(angles, 0, np.pi / 2)) ** 2
    return shares


def compute_t_interval(
    value: float, error: float, freedom: int, *, share: bool
) -> tuple[float, float] | None:
    """Compute a 95% interval by Student's t; None where no error is seen, or the scale has no such number.

    Args:
        freedom: degrees of freedom.
        share: whether the number is a share.
    """
    from scipy.stats import t

    if error <= 0 or value <= 0 or (share and value >= 1):
        return None
    step = float(t.ppf(0.975, freedom))
    low, high = move_by_errors(value, error, np.array([-step, step]), share=share)
    return float(low), float(high)


def draw_t_steps(freedom: int) -> Floats:
    """Draw `RESAMPLES` values of Student's t, the same ones for equal arguments."""
    return np.random.default_rng((_SEED, 0)).standard_t(freedom, RESAMPLES)


def draw_weighed_sums(of: Literal["personas", "groups"], rows: Floats) -> Floats:
    """Add up clusters under random weights, so that ratios of the sums vary as if clusters were resampled.

    As in the Bayesian bootstrap (Rubin 1981, The Bayesian bootstrap, Annals of Statistics 9), but with gamma
    weights of shape 1 - 4 / clusters instead of 1: so the variance of a mean is that of Student's t about it,
    with one degree of freedom less than clusters, and few clusters do not look surer than they are. As many
    clusters get the same weights each time, so what is weighed by them is paired.

    Args:
        of: what is weighed; weights of personas and of groups are independent.
        rows: shape (clusters, values), at least 6 clusters.

    Returns:
        shape (`RESAMPLES`, values).
    """
    generator = np.random.default_rng((_SEED, 1 if of == "personas" else 2))
    clusters = len(rows)
    step = max(1, _CELLS // clusters)
    sums = [
        generator.standard_gamma(1 - 4 / clusters, (min(step, RESAMPLES - done), clusters)) @ rows
        for done in range(0, RESAMPLES, step)
    ]
    return np.concatenate(sums)
