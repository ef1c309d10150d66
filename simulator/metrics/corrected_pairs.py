"""Each two chatbots' corrected HPT-1 compared by a t test over personas.

Resamples say nothing of which chatbot is best where counts are low: after a single hallucination, the other
chatbot is the lower one in every resample that has that persona. So the difference is tested, with its
standard error by the jackknife over personas, in which λ is computed again without each of them.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import combinations
from typing import NamedTuple

import numpy as np

from hallulab.scenarios.transcript import Frozen
from hallulab.simulator.metrics.judged_turns import Panel
from hallulab.simulator.statistics.differences import ALPHA, adjust_by_holm
from hallulab.simulator.statistics.intervals import (
    LEAST_FOR_INTERVAL,
    Floats,
    Interval,
    Rounded,
    compute_jackknife_error,
    compute_t_interval,
    compute_t_p_value,
)
from hallulab.simulator.statistics.prediction_powered import Draws, compute_thetas
from hallulab.simulator.statistics.prevalence import DetectorErrors, ErrorRates, solve_prevalence


class CorrectedPair(Frozen):
    """Two chatbots, corrected in the same way."""

    a: str
    b: str
    personas: int
    """Personas behind the number that rests on fewer; annotated ones, by annotations."""
    difference: Rounded
    """Corrected HPT-1 of `a` minus that of `b`, over all turns."""
    ci95: Interval
    p_holm: Rounded | None
    """Two-sided t test with personas - 1 degrees of freedom, adjusted by Holm over all pairs under the
    detector; None: the difference is the same without each persona."""


class Estimates(NamedTuple):
    """Corrected numbers of several chatbots, and the same without parts of the data."""

    values: Floats
    """Shape (chatbots,)."""
    parts: tuple[Floats, ...]
    """Without each persona, and without each group behind the rates: shape (left out, chatbots)."""
    personas: Floats
    """Personas behind each number."""


def compare_corrected(
    panel: Panel, chatbots: Sequence[str], powered: Sequence[int], known: DetectorErrors | None
) -> list[CorrectedPair]:
    """Compare each two of the chatbots that have turns.

    Empty where a chatbot has no corrected number or one from fewer than `LEAST_FOR_INTERVAL` personas, and
    where some are corrected by annotations and others are not: these differ by the method, too.

    Args:
        panel: sums of all turns under a detector.
        chatbots: names, in the order of the panel.
        powered: places of those that are corrected by annotations.
        known: the detector's mistakes; None: not known.
    """
    present = [place for place in range(len(chatbots)) if panel.flags[:, place, 0].any()]
    if list(powered) == present:
        estimates = estimate_by_labels(panel.looked_spans[:, present], panel.draws)
    elif not powered and known is not None:
        estimates = estimate_by_rates(choose_units(panel, known)[:, present], known.unit_rates)
    else:
        return []
    return [] if estimates is None else compare_estimates(estimates, [chatbots[place] for place in present])


def estimate_by_labels(sums: Floats, draws: Draws = ()) -> Estimates | None:
    """Estimate by prediction-powered inference; None with too few annotated personas.

    Args:
        sums: as of `estimate_means`, shape (personas, chatbots, values).
    """
    personas = np.count_nonzero(sums[:, :, 3], axis=0)
    if not personas.size or personas.min() < LEAST_FOR_INTERVAL:
        return None
    totals = sums.sum(axis=0)
    return Estimates(compute_thetas(totals, draws), (compute_thetas(totals - sums, draws),), personas)


def choose_units(panel: Panel, known: DetectorErrors | None) -> Floats:
    """Return turns, sentences, and what is corrected: a calibration counts flagged sentences, else spans."""
    return panel.sentences if known is not None and known.source == "calibration" else panel.spans


def estimate_by_rates(units: Floats, rates: ErrorRates) -> Estimates | None:
    """Estimate by the equation of Rogan and Gladen; None with too few personas, or groups behind the rates.

    Args:
        units: turns, sentences, and what the detector says: shape (personas, chatbots, 3).
    """
    personas = np.count_nonzero(units[:, :, 0], axis=0)
    if min([len(rates.groups), *personas]) < LEAST_FOR_INTERVAL:
        return None
    totals = units.sum(axis=0)
    values = solve_prevalence(totals, rates.value)
    by_groups = solve_prevalence(totals, rates.without[:, None])
    if np.isnan(values).any() or np.isnan(by_groups).any():
        return None
    return Estimates(values, (solve_prevalence(totals - units, rates.value), by_groups), personas)


def compare_estimates(found: Estimates, names: Sequence[str]) -> list[CorrectedPair]:
    """Test the difference of each two of the named chatbots."""
    pairs: list[tuple[CorrectedPair, float | None]] = []
    for one, two in combinations(range(len(names)), 2):
        difference = float(found.values[one] - found.values[two])
        error = math.hypot(*(compute_jackknife_error(part[:, one] - part[:, two]) for part in found.parts))
        personas = int(min(found.personas[one], found.personas[two]))
        pair = CorrectedPair(
            a=names[one],
            b=names[two],
            personas=personas,
            difference=difference,
            ci95=compute_t_interval(difference, error, personas - 1, "plain"),
            p_holm=None,
        )
        pairs.append((pair, compute_t_p_value(difference, error, personas - 1)))
    adjusted = adjust_by_holm([p_value for _, p_value in pairs])
    return [
        pair.model_copy(update={"p_holm": None if p_value is None else round(p_value, 6)})
        for (pair, _), p_value in zip(pairs, adjusted, strict=True)
    ]


def find_best(pairs: Sequence[CorrectedPair]) -> tuple[str, float] | None:
    """Return the chatbot that a test finds lower than every other one, and its largest p-value.

    None where there is no such chatbot.
    """
    lower: dict[str, list[float]] = {}
    for pair in pairs:
        lower.setdefault(pair.a, [])
        lower.setdefault(pair.b, [])
        if pair.p_holm is not None and pair.p_holm < ALPHA and pair.difference:
            lower[pair.a if pair.difference < 0 else pair.b].append(pair.p_holm)
    for name, p_values in lower.items():
        if len(p_values) == len(lower) - 1:
            return name, max(p_values)
    return None
