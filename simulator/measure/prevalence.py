"""Correct what a detector counts in a run for its own mistakes, measured on planted errors.

A detector that flags a share a of clean replies and a share b of wrong ones flags p = a + (b - a) π of all
replies, where π is the share of wrong ones. Rogan and Gladen (1978, Estimating prevalence from the results of
a screening test, American Journal of Epidemiology 107) solve this for π = (p - a) / (b - a); with
a = 1 - specificity and b = sensitivity, that is (p + sp - 1) / (se + sp - 1).

Hallucinations per turn are corrected by the same equation, with means in the place of shares: a is the mean
number of spans in a clean reply, b that in a reply with one error. Each further error is taken to add b - a
spans, too.

Both rest on one assumption: the detector finds the chatbot's own errors as often as planted ones, and flags
the chatbot's clean replies as often as clean twins.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from scenarios.transcript import Count, Frozen
from simulator.measure.numbers import Interval, Rounded
from simulator.measure.statistics import (
    RESAMPLES,
    Floats,
    cluster_weights,
    no_interval,
    percentiles,
)

_SEED = 1_978


class PairCounts(Frozen):
    """What a detector said of the planted errors of a group, and of their clean twins."""

    pairs: Count
    """Pairs of which it scored and localised both."""
    errors_flagged: Count
    """Replies with an error that are flagged."""
    twins_flagged: Count
    """Clean twins that are flagged."""
    error_spans: Count
    """Spans in the replies with an error."""
    twin_spans: Count
    """Spans in the clean twins."""


class Accuracy(Frozen):
    """A detector on planted errors: an item of `planted_counts` in the JSON of `hallulab bench`."""

    detector: str
    """Its name."""
    version: str
    """Its version."""
    all_pairs: Count
    """Pairs of the data, scored or not."""
    groups: tuple[PairCounts, ...]
    """The pairs that it scored, by group of the data."""

    @property
    def pairs(self) -> int:
        """Pairs of which it scored and localised both."""
        return sum(group.pairs for group in self.groups)


@dataclass(frozen=True)
class Flags:
    """What a detector says of a conversation."""

    turns: int
    """Turns scored and localised, at least one."""
    flagged: int
    """Those that are flagged."""
    spans: int
    """Spans in these turns."""


class Correction(Frozen):
    """The numbers of a chatbot by a detector, corrected for the detector's mistakes."""

    pairs: int
    """Pairs of planted errors and clean twins behind sensitivity and specificity."""
    sensitivity: Rounded | None
    """Share of the replies with an error that are flagged."""
    specificity: Rounded | None
    """Share of the clean twins that are not."""
    flagged_turns: Rounded | None
    """Share of the scored turns that are flagged."""
    hallucinated_turns: Rounded | None
    """That share, corrected, in [0, 1]."""
    hallucinated_turns_ci95: Interval
    """See `corrected`."""
    hpt_1: Rounded | None
    """Hallucinations per scored turn, as the detector counts them."""
    corrected_hpt_1: Rounded | None
    """That number, corrected, not below 0."""
    corrected_hpt_1_ci95: Interval
    """See `corrected`."""
    clipped: Literal["below 0", "above 1"] | None
    """On which side the corrected share lay outside [0, 1], so that it was set to that end."""
    not_corrected: str | None
    """Why there is no corrected number."""
    no_interval: str | None
    """Why there is no interval."""


def corrected(conversations: Sequence[Flags], accuracy: Accuracy) -> Correction:
    """Correct a chatbot's numbers by the equation of the module, with 95% percentile intervals.

    Each replicate takes conversations with replacement, and weighs the groups of pairs by a Bayesian
    bootstrap (Rubin 1981, The Bayesian bootstrap, Annals of Statistics 9). So an interval has the uncertainty
    of all three shares, and neither turns of a conversation nor errors in the same text count as independent.
    Where no twin at all is flagged, no replicate would have a flagged one, as if that were certain. So, as
    Lang and Reiczigel add one success and one failure to each share (2014, Confidence limits for prevalence
    of disease adjusted for estimated sensitivity and specificity, Preventive Veterinary Medicine 113), two
    made-up pairs enter every replicate: in one both replies have one span, in the other neither has any.

    Args:
        conversations: what the detector says of each conversation of the chatbot.
        accuracy: of the same version of that detector.
    """
    said = np.array([(c.turns, c.flagged, c.spans) for c in conversations], dtype=np.float64).reshape(-1, 3)
    groups = [group for group in accuracy.groups if group.pairs]
    pairs = np.array([_counts(group) for group in groups], dtype=np.float64).reshape(-1, 5)
    turns, *of_turns = (float(total) for total in said.sum(axis=0))
    number, *of_pairs = (float(total) for total in pairs.sum(axis=0))
    measured = np.array(of_turns) / turns if turns else None
    rates = np.array(of_pairs) / number if number else None
    reason = _reason(measured, rates)
    share = count = ends = lacking = None
    if measured is not None and rates is not None and reason is None:
        share, count = (float(value) for value in _solved(measured, rates))
        lacking = no_interval(len(conversations)) or no_interval(len(groups), "planted group")
        ends = None if lacking else _intervals(said, pairs)
    return Correction(
        pairs=int(number),
        sensitivity=None if rates is None else rates[2],
        specificity=None if rates is None else 1 - rates[0],
        flagged_turns=None if measured is None else measured[0],
        hallucinated_turns=None if share is None else min(max(share, 0.0), 1.0),
        hallucinated_turns_ci95=None if ends is None else ends[0],
        hpt_1=None if measured is None else measured[1],
        corrected_hpt_1=None if count is None else max(count, 0.0),
        corrected_hpt_1_ci95=None if ends is None else ends[1],
        clipped=None if share is None or 0 <= share <= 1 else "below 0" if share < 0 else "above 1",
        not_corrected=reason,
        no_interval=lacking,
    )


def _counts(group: PairCounts) -> tuple[int, int, int, int, int]:
    """Return pairs; flags and spans of twins; flags and spans of errors."""
    return group.pairs, group.twins_flagged, group.twin_spans, group.errors_flagged, group.error_spans


def _reason(measured: Floats | None, rates: Floats | None) -> str | None:
    """Say why nothing can be corrected; None: it can be."""
    if measured is None:
        return "no turn was scored"
    if rates is None:
        return "no pair of a planted error and its twin was scored"
    if rates[2] <= rates[0] or rates[3] <= rates[1]:
        return (
            f"it flags {rates[2]:.0%} of the planted errors and {rates[0]:.0%} of their clean twins, so its "
            "flags do not tell errors from clean replies (sensitivity + specificity must be above 1)"
        )
    return None


def _solved(measured: Floats, rates: Floats) -> Floats:
    """Solve the module's equation for share and count; NaN where errors are not flagged more than twins.

    Args:
        measured: share of flagged turns and spans per turn; shape (..., 2).
        rates: the same of twins, then of errors; shape (..., 4).
    """
    more = rates[..., 2:] - rates[..., :2]
    return (measured - rates[..., :2]) / np.where(more > 0, more, np.nan)


def _intervals(said: Floats, pairs: Floats) -> tuple[Interval, Interval]:
    """Return the intervals of share and count, see `corrected`."""
    taken = cluster_weights(len(said), RESAMPLES) @ said
    made_up = np.array([[1.0, 1.0, 1.0, 1.0, 1.0], [1.0, 0.0, 0.0, 0.0, 0.0]])
    known = np.concatenate([pairs, made_up])
    weighed = np.random.default_rng(_SEED).standard_exponential((RESAMPLES, len(known))) @ known
    solved = _solved(taken[:, 1:] / taken[:, :1], weighed[:, 1:] / weighed[:, :1])
    return percentiles(np.clip(solved[:, 0], 0.0, 1.0)), percentiles(np.maximum(solved[:, 1], 0.0))
