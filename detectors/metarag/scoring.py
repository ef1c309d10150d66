"""Penalties and scores of MetaRAG: Table 1, equations 1 and 2. Pure arithmetic."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Literal

Relation = Literal["synonym", "antonym"]
Decision = Literal["YES", "NO", "NOT SURE"]

PENALTIES: Mapping[Relation, Mapping[Decision, float]] = {
    "synonym": {"YES": 0.0, "NOT SURE": 0.5, "NO": 1.0},
    "antonym": {"YES": 1.0, "NOT SURE": 0.5, "NO": 0.0},
}
"""Table 1: a synonym should be entailed by the context, an antonym contradicted."""

PAPER_TAU = 0.5
"""Threshold of the paper's experiments (section 4.2), for printed words: two NOT SURE reach it."""

MIDWAY_TAU = 0.375
"""Threshold for probabilities, where noise moves S. It is midway between 0.5, the S of a baseless fact, and
0.25, about that of a supported fact if a quarter of its variants are wrong."""


def expected_penalty(relation: Relation, decisions: Mapping[Decision, float]) -> float:
    """Return Table 1's penalty in [0, 1], averaged over a distribution of decisions."""
    return sum(PENALTIES[relation][decision] * share for decision, share in decisions.items())


def score_factoid(
    synonyms: Sequence[float], antonyms: Sequence[float], unchanged: float | None = None
) -> float:
    """Return S_i, equation 1: the mean penalty over the N synonym and the N antonym variants.

    Args:
        unchanged: penalty of the factoid itself, which then counts as one more synonym (ours).

    Raises:
        ValueError: there are no variants, or not as many of one kind as of the other.
    """
    if not synonyms or len(synonyms) != len(antonyms):
        raise ValueError(f"{len(synonyms)} synonym and {len(antonyms)} antonym penalties; N of each expected")
    penalties = [*synonyms, *antonyms, *([] if unchanged is None else [unchanged])]
    return sum(penalties) / len(penalties)


def score_response(factoids: Sequence[float]) -> float:
    """Return H, equation 2: the highest S_i.

    Raises:
        ValueError: there are no factoids.
    """
    return max(factoids)
