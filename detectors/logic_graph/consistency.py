"""Module C, consistency scoring (paper section 3.2.3): turn entailments of many groups into one number."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Literal

Weighting = Literal["relevance", "equal", "best"]
"""How groups count: by relevance; all equally (table 5, without C); only the one that entails most."""


def compute_shares(
    relevances: Sequence[float], top: int | None = None, temperature: float | None = None
) -> dict[int, float]:
    """Return r̃_k of the groups that count, by their places; the shares sum to 1.

    Without a temperature they go by r_k as in the paper. Relevances below 0 (a reranker's logits) count as 0;
    if none is above 0, all groups count the same.

    The paper's worked example has the decision scores 0.115 (table 8) and 0.457 (table 9). The equation over
    all its groups gives 0.092 and 0.197. Both numbers come out exactly if only the 5 and the 2 most relevant
    groups count. The text does not say so, hence `top`.

    Args:
        relevances: r_k of at least one group.
        top: only this many of the most relevant groups count; None: all.
        temperature: τ above 0; the shares go by exp(r_k / τ) (ours), for relevances that lie close together.
    """
    if temperature is None:
        weights = [max(0.0, value) for value in relevances]
        if not any(weights):
            return dict.fromkeys(range(len(weights)), 1.0 / len(weights))
    else:
        largest = max(relevances)
        weights = [math.exp((value - largest) / temperature) for value in relevances]
    order = sorted(range(len(weights)), key=lambda index: -weights[index])[:top]
    total = sum(weights[index] for index in order)
    return {index: weights[index] / total for index in sorted(order)}


def compute_support(entailments: Mapping[int, float], weights: Mapping[int, float]) -> float:
    """Return S = Σ r̃_k e_k, in [0, 1]: how far the evidence supports a claim.

    Args:
        entailments: e_k by the group's place, at least of the groups that count.
        weights: as `compute_shares` returns them.
    """
    # Rounding may end a hair above 1.
    return min(1.0, sum(share * entailments[index] for index, share in weights.items()))
