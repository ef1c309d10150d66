"""Correct a detector's counts by its mistakes as measured elsewhere, and the intervals of corrected numbers.

A detector that flags a share a of clean replies and a share b of wrong ones flags p = a + (b - a) π of all
replies, where π is the share of wrong ones. Rogan and Gladen (1978, Estimating prevalence from the results of
a screening test, American Journal of Epidemiology 107) solve this for π = (p - a) / (b - a); with
a = 1 - specificity and b = sensitivity, that is (p + sp - 1) / (se + sp - 1). So the share of hallucinated
turns is corrected by a calibration, whose wrong replies have as many errors as there are.

Hallucinations per turn are corrected by the same equation: (p - a n) / e, where p is what the detector says a
turn, n is the sentences a turn, a is what the detector says of a clean sentence, and e what an error adds. By
planted errors, it says spans, and errors are taken to add up. By a calibration, it flags sentences, and an
error is a wrong sentence: so the result counts hallucinated sentences, and not hallucinations.

A planted reply has one error, and a reply of a run may have more, of which one flagged is enough. Where the
number of errors of a turn is that of Poisson with mean h, 1 - p = exp(-φ n - s h), with φ the false alarms of
a sentence and s the share of errors that are flagged. So by planted errors h = (-log(1 - p) - φ n) / s, and
the share of hallucinated turns is 1 - exp(-h).

Both rest on one assumption: the detector finds the chatbot's own errors as often as those it was measured on,
and flags clean replies as often as clean ones there.

Intervals of corrected numbers share errors by leaving clusters out, scales and weights. A sum over few
personas is skewed: most have few hallucinations, some have many. An interval that is symmetric about the
estimate, or has the percentiles of a bootstrap, then lies too low. So a number is moved by standard errors on
the scale of its logarithm, a share on that of the arcsine of its root, with the quantiles of Student's t.
docs/studies/corrected.md says how often such intervals have the truth.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Literal

import numpy as np

from hallulab.simulator.statistics.bootstrap import RESAMPLES
from hallulab.simulator.statistics.intervals import Floats, compute_jackknife_error

_SEED = 1_978
MADE_UP = {
    5: np.array([[1.0, 1.0, 1.0, 1.0, 1.0], [1.0, 0.0, 1.0, 0.0, 1.0]]),
    6: np.array([[1.0, 1.0, 1.0, 1.0, 1.0, 1.0], [1.0, 0.0, 1.0, 1.0, 0.0, 1.0]]),
}
"""Two groups that enter those behind rates, by their number of sums; of one sentence a reply."""
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
    """Return (`RESAMPLES`, values): clusters added up under random weights, as if they were resampled.

    As in the Bayesian bootstrap (Rubin 1981, The Bayesian bootstrap, Annals of Statistics 9), but with gamma
    weights of shape 1 - 4 / clusters instead of 1: so the variance of a mean is that of Student's t about it,
    with one degree of freedom less than clusters, and few clusters do not look surer than they are. As many
    clusters get the same weights each time, so what is weighed by them is paired.

    Args:
        of: what is weighed; weights of personas and of groups are independent.
        rows: shape (clusters, values), at least 6 clusters.
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
    """A detector's known mistakes, for each group of the data that it was measured on."""

    source: Literal["planted errors", "calibration"]
    replies: Floats
    """Clean replies, flagged ones of them, and their sentences; the same of wrong replies: shape
    (groups, 6)."""
    units: Floats
    """Clean sentences, and what the detector says of them; errors, what it says where they are, and the
    sentences there: shape (groups, 5)."""

    @property
    def is_single(self) -> bool:
        """True if each wrong reply has one error."""
        return self.source == "planted errors"

    @property
    def accuracy(self) -> tuple[float, float] | None:
        """Sensitivity and specificity at replies; None where a kind of reply is lacking."""
        clean, of_clean, _, wrong, of_wrong, _ = map(float, self.replies.sum(axis=0))
        return (of_wrong / wrong, 1 - of_clean / clean) if clean and wrong else None

    @cached_property
    def reply_rates(self) -> ErrorRates:
        """Those by which the share of hallucinated turns is corrected."""
        return ErrorRates(self.replies, compute_flag_rates if self.is_single else compute_reply_rates)

    @cached_property
    def unit_rates(self) -> ErrorRates:
        """Those by which hallucinations per turn are corrected."""
        return ErrorRates(self.units, compute_unit_rates)


@dataclass(frozen=True)
class ErrorRates:
    """The mean of what a detector says without an error, by turn or sentence, and of what an error adds."""

    groups: Floats
    """Sums of each group behind the rates."""
    compute: Callable[[Floats], Floats]
    """Computes both from sums."""

    @cached_property
    def value(self) -> Floats:
        """The two; NaN where a kind of reply is lacking."""
        return self.compute(self.groups.sum(axis=0))

    @cached_property
    def without(self) -> Floats:
        """The same without each group: shape (groups, 2)."""
        return self.compute(self.groups.sum(axis=0) - self.groups)

    @cached_property
    def drawn(self) -> Floats:
        """Draws of the two: shape (`RESAMPLES`, 2)."""
        return self.compute(draw_group_sums(self.groups))


def compute_reply_rates(sums: Floats) -> Floats:
    """Compute a and b - a from sums of `DetectorErrors.replies`, shape (..., 6)."""
    shares = _divide(sums[..., [1, 4]], sums[..., [0, 3]])
    return np.stack([shares[..., 0], shares[..., 1] - shares[..., 0]], axis=-1)


def compute_unit_rates(sums: Floats) -> Floats:
    """Compute a and e from sums of `DetectorErrors.units`, shape (..., 5)."""
    clean, of_clean, errors, of_errors, sentences = np.moveaxis(sums, -1, 0)
    alarms = _divide(of_clean, clean)
    return np.stack([alarms, _divide(of_errors - alarms * sentences, errors)], axis=-1)


def compute_flag_rates(sums: Floats) -> Floats:
    """Compute φ and s from sums of `DetectorErrors.replies`, shape (..., 6)."""
    clean, of_clean, clean_sentences, wrong, of_wrong, wrong_sentences = np.moveaxis(sums, -1, 0)
    alarms = _divide(compute_poisson_mean(_divide(of_clean, clean)) * clean, clean_sentences)
    both = compute_poisson_mean(_divide(of_wrong, wrong))
    found = 1 - np.exp(np.minimum(alarms * _divide(wrong_sentences, wrong) - both, 0.0))
    return np.stack([alarms, found], axis=-1)


def compute_poisson_mean(share: Floats) -> Floats:
    """Compute the mean of a Poisson number that is above 0 with this probability; of 1, a large number."""
    found: Floats = -np.log(np.maximum(1 - share, 1e-12))
    return found


def _divide(above: Floats, below: Floats) -> Floats:
    """Divide; NaN where there is nothing to divide by."""
    found: Floats = above / np.where(below > 0, below, np.nan)
    return found


def draw_group_sums(groups: Floats) -> Floats:
    """Draw sums by weighing groups at random; shape (`RESAMPLES`, sums), the same ones for equal groups.

    Where no clean unit at all is flagged, no draw would have a flagged one, as if that were certain. So, as
    Lang and Reiczigel add one success and one failure to each share (2014, Confidence limits for prevalence
    of disease adjusted for estimated sensitivity and specificity, Preventive Veterinary Medicine 113), two
    made-up groups enter: in one a clean and a wrong unit are flagged, in the other neither.
    """
    return draw_weighed_sums("groups", np.concatenate([groups, MADE_UP[groups.shape[1]]]))


def solve_prevalence(totals: Floats, rates: Floats) -> Floats:
    """Solve the module's equation; NaN where errors add nothing.

    Args:
        totals: turns, units, and what the detector says; shape (..., 3).
        rates: what it says of a clean unit, and what an error adds; shape (..., 2).
    """
    turns, units, said = np.moveaxis(totals, -1, 0)
    more = rates[..., 1]
    solution: Floats = (said - rates[..., 0] * units) / turns / np.where(more > 0, more, np.nan)
    return solution


def solve_by_flags(rows: Floats, rates: Floats) -> Floats:
    """Solve for the share of turns with an error, whose number is that of Poisson.

    Args:
        rows: turns, sentences and flagged turns; shape (..., 3).
        rates: φ and s; shape (..., 2).
    """
    said = rows[..., 0] * compute_poisson_mean(rows[..., 2] / rows[..., 0])
    totals = np.stack([rows[..., 0], rows[..., 1], said], axis=-1)
    share: Floats = 1 - np.exp(-solve_prevalence(totals, rates))
    return share


def compute_run_error(rows: Floats, rates: ErrorRates, *, is_single: bool) -> float:
    """Compute the standard error over clusters of what the detector says, less its false alarms.

    Arguments as `draw_prevalences`.
    """
    turns, _, said = rows.sum(axis=0)
    others = rows.sum(axis=0) - rows
    alarms = rates.value[0] * (1 - said / turns if is_single else 1)
    return compute_jackknife_error((others[:, 2] - alarms * others[:, 1]) / others[:, 0])


def draw_prevalences(rows: Floats, rates: ErrorRates, *, share: bool, is_single: bool = False) -> Floats:
    """Draw solutions of the equation with the uncertainty of the run and of the rates: shape (`RESAMPLES`,).

    The detector's value of a turn is moved by its standard error, as the module's docstring explains; the
    error is that of p - a n, for long replies have more of both. The rates are as drawn.

    Args:
        rows: totals of each cluster, shape (clusters, 3); each has a turn.
        share: whether the number is a share.
        is_single: whether it is solved for by `solve_by_flags`.
    """
    turns, units, said = rows.sum(axis=0)
    error = compute_run_error(rows, rates, is_single=is_single)
    said_a_turn = move_by_errors(said / turns, error, draw_t_steps(len(rows) - 1), share=share)
    totals = np.stack([np.ones(RESAMPLES), np.full(RESAMPLES, units / turns), said_a_turn], axis=-1)
    return (solve_by_flags if is_single else solve_prevalence)(totals, rates.drawn)
