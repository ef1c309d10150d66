"""Decisions under three ways to choose the threshold. Values of F1 are comparable only under the same one.

- `default`: the detector's own flags, at the threshold that it came with or learnt.
- `tuned`: the groups are cut into two halves. Each half's threshold has the highest F1 on the other half. No
  extra replies are needed, and every item counts once. None where a half has no positives to tune on.
- `oracle`: the single threshold on these scores with the highest F1 on the very items it is measured on. This
  is no result. The detector's own flags may do better where they are no single threshold on these scores.
"""

from __future__ import annotations

import dataclasses
import random

import numpy as np

from hallulab.scenarios.transcript import Frozen
from hallulab.simulator.statistics.detection import Booleans, Sample, compute_flag_scores, find_best_threshold
from hallulab.simulator.statistics.intervals import Rounded

_SEED = 17


class Decided(Frozen):
    """Decisions under one protocol; all None where it has no threshold."""

    threshold: Rounded | tuple[Rounded, Rounded] | None = None
    precision: Rounded | None = None
    recall: Rounded | None = None
    f1: Rounded | None = None
    balanced_accuracy: Rounded | None = None


class Thresholds(Frozen):
    """Decisions under each protocol."""

    default: Decided
    """At the detector's own threshold."""
    tuned: Decided = Decided()
    """At the threshold of the other half of the groups."""
    oracle: Decided = Decided()
    """At the best threshold on the very items."""


def decide_by_protocols(sample: Sample, clusters: int, threshold: float | None) -> Thresholds:
    """Decide under every protocol.

    Args:
        clusters: number of groups; `sample.clusters` are their numbers.
        threshold: the detector's own at this level, if any.
    """
    halves = draw_dev_half(clusters)[sample.clusters] if len(sample.clusters) else np.zeros(0, dtype=bool)
    fitted = [find_best_threshold(sample.only(half)) for half in (halves, ~halves)]
    tuned = dataclasses.replace(
        sample,
        flags=np.where(halves, sample.flagged_from(fitted[1]).flags, sample.flagged_from(fitted[0]).flags),
    )
    oracle = find_best_threshold(sample)
    one, other = fitted
    return Thresholds(
        default=_decide_at(sample, threshold),
        tuned=Decided() if one is None or other is None else _decide_at(tuned, (one, other)),
        oracle=_decide_at(sample.flagged_from(oracle), oracle),
    )


def draw_dev_half(clusters: int) -> Booleans:
    """Draw a seeded half of the groups, as a mask over their numbers."""
    chosen = random.Random(_SEED).sample(range(clusters), clusters // 2)  # noqa: S311 - a seeded choice
    mask = np.zeros(clusters, dtype=bool)
    mask[chosen] = True
    return mask


def _decide_at(sample: Sample, threshold: float | tuple[float, float] | None) -> Decided:
    found = compute_flag_scores(sample)
    return Decided(threshold=threshold, **{name: found[name] for name in found if name != "accuracy"})
