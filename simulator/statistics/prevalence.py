"""Correct a detector's counts by its mistakes as measured elsewhere, and the intervals of corrected numbers.

A detector that flags a share a of clean replies and a share b of wrong ones flags p = a + (b - a) π of all
replies, where π is the share of wrong ones. Rogan and Gladen (1978, Estimating prevalence from the results of
a screening test, American Journal of Epidemiology 107) solve this for π = (p - a) / (b - a); with
a = 1 - specificity and b = sensitivity, that is (p + sp - 1) / (se + sp - 1).

Hallucinations per turn are corrected by the same equation, with a and b per unit of the reply, and u units a
turn: (p - a u) / (b - a), where p is what the detector says a turn. By planted errors, the unit is the reply,
and a is the mean number of spans in a clean one, b that in one with one error; each further error is taken to
add b - a spans, too. By a calibration, units are sentences, and a and b are shares of flagged ones.

Both rest on one assumption: the detector finds the chatbot's own errors as often as those it was measured on,
and flags clean replies as often as clean ones there.

Intervals of corrected numbers share errors by leaving clusters out, scales and weights. A sum over few
personas is skewed: most have few hallucinations, some have many. An interval that is symmetric about the
estimate, or has the percentiles of a bootstrap, then lies too low. So a number is moved by standard errors on
the scale of its logarithm, a share on that of the arcsine of its root, with the quantiles of Student's t.
`python -m benchmarks.corrected_coverage` measures how often such intervals have the truth.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Literal

import numpy as np

from hallulab.simulator.statistics.bootstrap import RESAMPLES
from hallulab.simulator.statistics.intervals import Floats, compute_jackknife_error

_SEED = 1_978
_CELLS = 4_000_000
"""Largest number of weights in memory at once."""


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


@dataclass(frozen=True)
class DetectorErrors:
    """A detector's known mistakes, shape (groups, 4).

    For each group of the data that it was measured on: the clean units, what it says of them, the wrong
    units, and what it says of those.
    """

    source: Literal["planted errors", "calibration"]
    replies: Floats
    units: Floats
    """Of what HPT is corrected by."""
    unit: Literal["reply", "sentence"]

    @cached_property
    def drawn_replies(self) -> Floats:
        """Draws of a and b of `replies`."""
        return draw_rates(self.replies)

    @cached_property
    def drawn_units(self) -> Floats:
        """Draws of a and b of `units`."""
        return draw_rates(self.units)


def compute_rates(groups: Floats) -> Floats | None:
    """Return a and b of the module's equation; None where a kind of unit is lacking."""
    clean, of_clean, wrong, of_wrong = groups.sum(axis=0)
    return np.array([of_clean / clean, of_wrong / wrong]) if clean and wrong else None


def draw_rates(groups: Floats) -> Floats:
    """Draw a and b by weighing groups at random; shape (`RESAMPLES`, 2), the same ones for equal groups.

    Where no clean unit at all is flagged, no draw would have a flagged one, as if that were certain. So, as
    Lang and Reiczigel add one success and one failure to each share (2014, Confidence limits for prevalence
    of disease adjusted for estimated sensitivity and specificity, Preventive Veterinary Medicine 113), two
    made-up groups enter: in one a clean and a wrong unit are flagged, in the other neither.
    """
    known = np.concatenate([groups, [[1.0, 1.0, 1.0, 1.0], [1.0, 0.0, 1.0, 0.0]]])
    sums = draw_weighed_sums("groups", known)
    drawn: Floats = sums[:, [1, 3]] / sums[:, [0, 2]]
    return drawn


def solve_prevalence(totals: Floats, rates: Floats) -> Floats:
    """Solve the module's equation; NaN where wrong units are not flagged more often than clean ones.

    Args:
        totals: turns, units, and what the detector says; shape (..., 3).
        rates: a and b; shape (..., 2).
    """
    turns, units, said = np.moveaxis(totals, -1, 0)
    more = rates[..., 1] - rates[..., 0]
    solution: Floats = (said - rates[..., 0] * units) / turns / np.where(more > 0, more, np.nan)
    return solution


def draw_prevalences(rows: Floats, rates: Floats, drawn: Floats, *, share: bool) -> Floats:
    """Draw solutions of the equation with the uncertainty of the run and of the rates: shape (`RESAMPLES`,).

    The detector's value of a turn is moved by its standard error, as the module's docstring explains; the
    error is that of p - a u, for long replies have more of both. The rates are as drawn.

    Args:
        rows: totals of each cluster, shape (clusters, 3); each has a turn.
        rates: a and b.
        drawn: draws of these.
        share: whether the number is a share.
    """
    turns, units, said = rows.sum(axis=0)
    others = rows.sum(axis=0) - rows
    error = compute_jackknife_error((others[:, 2] - rates[0] * others[:, 1]) / others[:, 0])
    said_a_turn = move_by_errors(said / turns, error, draw_t_steps(len(rows) - 1), share=share)
    totals = np.stack([np.ones(RESAMPLES), np.full(RESAMPLES, units / turns), said_a_turn], axis=-1)
    return solve_prevalence(totals, drawn)
