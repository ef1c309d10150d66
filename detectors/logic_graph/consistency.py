"""Module C, consistency scoring (paper section 3.2.3): entailments of many groups into one number."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

Weighting = Literal["relevance", "equal", "best"]
"""How groups count: by relevance; all the same (table 5, without C); only the one that entails most."""


def support(
    entailments: Sequence[float],
    relevances: Sequence[float] | None = None,
    top: int | None = None,
) -> float:
    """S = Σ r̃_k e_k, in [0, 1]: how far the evidence bears a claim out.

    Relevances below 0 (a reranker's logits) count as 0; where none is above it, or without relevances, all
    groups count the same.

    The paper's worked example has the decision scores 0.115 (table 8) and 0.457 (table 9). The equation over
    all its groups gives 0.092 and 0.197; both numbers come out exactly when only the 5 and the 2 most
    relevant groups count. The text does not say so, hence `top`.

    Args:
        entailments: e_k of at least one group.
        relevances: r_k, in the same order.
        top: so many of the most relevant groups count; None: all. Without relevances all do.
    """
    weights = [max(0.0, value) for value in relevances or ()]
    if not any(weights):
        return sum(entailments) / len(entailments)
    order = sorted(range(len(weights)), key=lambda index: -weights[index])[:top]
    total = sum(weights[index] for index in order)
    # Rounding may end a hair above 1.
    return min(1.0, sum(weights[index] * entailments[index] for index in order) / total)
