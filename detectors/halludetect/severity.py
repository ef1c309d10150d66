"""Severities 1 to 5 and the votes of self-consistency. Pure arithmetic."""

from __future__ import annotations

from collections.abc import Sequence

HARMLESS, CRITICAL = 1.0, 5.0
"""Ends of the scale (B.1.4)."""
PAPER_THRESHOLD = 4.0
"""Severity from which a hallucination is kept (section 3.2)."""


def compute_severity(unsupported: float, consequence: float) -> float:
    """Return a sentence's severity from two probabilities (ours; in the paper the refiner writes a digit).

    Two kinds of sentence are harmless: unsupported without consequence (a polite offer), and supported. So
    the product of both counts, with `consequence` in full from even odds on. Three points fix the scale:
    nothing is 1, certainty is 5, and even odds that a claim is unsupported are 4, the severity from which a
    hallucination is kept.

    Args:
        unsupported: probability that the evidence does not support the sentence.
        consequence: probability that the sentence states something that can be right or wrong.
    """
    risk = unsupported * min(1.0, 2.0 * consequence)
    if risk <= 0.5:
        return HARMLESS + (PAPER_THRESHOLD - HARMLESS) * risk / 0.5
    return PAPER_THRESHOLD + (CRITICAL - PAPER_THRESHOLD) * (risk - 0.5) / 0.5


def mean(samples: Sequence[float]) -> float:
    """Return the mean over the samples of one analysis.

    Raises:
        ValueError: there are none.
    """
    if not samples:
        raise ValueError("no samples")
    return sum(samples) / len(samples)


def find_majority(votes: int, samples: int) -> bool:
    """Return whether more than half of the samples agree."""
    return 2 * votes > samples
