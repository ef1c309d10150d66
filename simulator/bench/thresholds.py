"""Decisions under three ways to choose the threshold; whoever compares F1 must know which one it is.

- `default`: the detector's own flags, at the threshold that it came with or learnt.
- `tuned`: the groups are cut into two halves; each half's threshold is the one with the highest F1 on the
  other half, frozen there. No extra replies are needed and every item counts once. Nothing where a half has
  no positives to tune on.
- `oracle`: the single threshold on these scores with the highest F1 on the very items it is measured on: no
  result. The detector's own flags may do better where they are no single threshold on these scores.
"""

from __future__ import annotations

import dataclasses
import random
from typing import Any

import numpy as np

from simulator.measure.detection import Booleans, Sample, best_threshold, decisions

_SEED = 17
_NUMBERS = ("precision", "recall", "f1", "balanced_accuracy")
_UNDEFINED = dict.fromkeys(("threshold", *_NUMBERS))


def threshold_protocols(sample: Sample, clusters: int, threshold: float | None) -> dict[str, dict[str, Any]]:
    """Threshold, precision, recall, F1 and balanced accuracy by protocol.

    Args:
        clusters: number of groups, of which `sample.clusters` are numbers.
        threshold: the detector's own, where it has one at this level.
    """
    halves = dev_half(clusters)[sample.clusters] if len(sample.clusters) else np.zeros(0, dtype=bool)
    fitted = [best_threshold(sample.only(half)) for half in (halves, ~halves)]
    tuned = dataclasses.replace(
        sample,
        flags=np.where(halves, sample.flagged_from(fitted[1]).flags, sample.flagged_from(fitted[0]).flags),
    )
    oracle = best_threshold(sample)
    return {
        "default": {"threshold": threshold, **_measured(sample)},
        "tuned": {"threshold": fitted, **_measured(tuned)} if None not in fitted else _UNDEFINED,
        "oracle": {"threshold": oracle, **_measured(sample.flagged_from(oracle))},
    }


def dev_half(clusters: int) -> Booleans:
    """A seeded half of the groups, as a mask over their numbers."""
    chosen = random.Random(_SEED).sample(range(clusters), clusters // 2)  # noqa: S311 - a seeded choice
    mask = np.zeros(clusters, dtype=bool)
    mask[chosen] = True
    return mask


def _measured(sample: Sample) -> dict[str, float | None]:
    found = decisions(sample)
    return {name: found[name] for name in _NUMBERS}
