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


def decision_probabilities(supported: float, contradicted: float) -> dict[Decision, float]:
    """Return a distribution over the three decisions from two probabilities (ours; the paper asks for a
    word).

    Support is decided first, contradiction only without support, so that the three sum to 1: P(YES) = s,
    P(NO) = (1 - s) c, P(NOT SURE) = (1 - s) (1 - c).
    """
    unsupported = 1.0 - supported
    return {
        "YES": supported,
        "NO": unsupported * contradicted,
        "NOT SURE": unsupported * (1.0 - contradicted),
    }


def expected_penalty(relation: Relation, decisions: Mapping[Decision, float]) -> float:
    """Return Table 1's penalty in [0, 1], averaged over a distribution of decisions."""
    return sum(PENALTIES[relation][decision] * share for decision, share in decisions.items())


def factoid_score(synonyms: Sequence[float], antonyms: Sequence[float]) -> float:
    """Return S_i, equation 1: the mean penalty over the N synonym and the N antonym variants.

    Raises:
        ValueError: there are no variants, or not as many of one kind as of the other.
    """
    if not synonyms or len(synonyms) != len(antonyms):
        raise ValueError(f"{len(synonyms)} synonym and {len(antonyms)} antonym penalties; N of each expected")
    return (sum(synonyms) + sum(antonyms)) / (2 * len(synonyms))


def response_score(factoids: Sequence[float]) -> float:
    """Return H, equation 2: the highest S_i.

    Raises:
        ValueError: there are no factoids.
    """
    return max(factoids)
