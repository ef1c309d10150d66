"""A confidence sequence for a mean of bounded differences: intervals that hold at every person at once.

Whoever looks after each batch and stops when it suits looks often, and an ordinary 95% interval then misses
far more often than 5% of the time. These intervals all hold together with the probability that they promise.

The method is betting (Waudby-Smith and Ramdas 2024, Estimating means of bounded random variables by betting,
JRSS B 86(1), Theorem 3: hedged capital, and its intersection over time). Against "the mean is at most m"
somebody stakes on each next person: the capital is multiplied by 1 + f (d - m) / (c + m), where d in [-c, c]
is the person's difference. If the mean is at most m, no stake 0 < f < 1 gains in expectation, so by Ville's
inequality the capital ever reaches 2 / level with a probability of at most level / 2. Then m is excluded, for
good. Against "at least m" it is the mirror image. No stake is guessed: the capital is split evenly over a
grid of stakes (Cover's universal portfolio), which is a bet as well.

Nothing is assumed of the differences but their bounds, and that each person's has the same mean given those
before: not their shape, not their variance.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

CEILING = 2.0
"""Largest HPT of a person that counts; more counts as this much. Differences are between ± this."""
STAKES = (np.arange(20) + 0.5) / 20
"""Shares of the largest stake that never loses everything."""
_STEPS = 100
"""Means tried per hallucination a turn."""

Floats = NDArray[np.float64]

MEANS: Floats = np.arange(1 - int(CEILING * _STEPS), int(CEILING * _STEPS)) / _STEPS
"""The means that are tried, symmetric about 0."""


def compute_growth(differences: Floats, means: Floats) -> Floats:
    """Return by how much each stake's logarithm of capital against "at most this mean" grows.

    Args:
        differences: One a person, in [-CEILING, CEILING].
        means: Means inside these bounds. Both are broadcast; stakes are a new last axis.
    """
    odds = (differences - means) / (CEILING + means)
    return np.asarray(np.log1p(odds[..., np.newaxis] * STAKES), dtype=np.float64)


def compute_capital(logs: Floats) -> Floats:
    """Return the logarithm of the capital of all stakes together, of 1 that was split evenly over them."""
    highest = logs.max(axis=-1)
    return np.asarray(highest + np.log(np.exp(logs - highest[..., np.newaxis]).mean(axis=-1)))


def compute_bar(level: float) -> float:
    """Return the logarithm of the capital that excludes a mean, at one of two sides."""
    return math.log(2 / level)


class MeanSequence:
    """Intervals for a mean that hold at all times together, each inside those before it.

    Args:
        level: Probability that one of all intervals misses the mean, at most.

    >>> sequence = MeanSequence(level=0.05)
    >>> for _ in range(30):
    ...     sequence.add(0.5)
    >>> sequence.low, sequence.high
    (0.14, 0.79)
    """

    def __init__(self, level: float) -> None:
        self.count = 0
        self.total = 0.0
        self._bar = compute_bar(level)
        shape = (len(MEANS), len(STAKES))
        self._rises, self._falls = np.zeros(shape), np.zeros(shape)
        self._below = self._above = 0

    def add(self, difference: float) -> None:
        """Take the next person's difference.

        Raises:
            ValueError: it is outside of ± `CEILING`.
        """
        if not -CEILING <= difference <= CEILING:
            raise ValueError(f"the difference {difference} is outside of ±{CEILING}")
        self.count += 1
        self.total += difference
        self._rises += compute_growth(np.array(difference), MEANS)
        self._falls += compute_growth(np.array(-difference), MEANS)
        self._below = max(self._below, self._count_excluded(self._rises))
        self._above = max(self._above, self._count_excluded(self._falls))

    @property
    def mean(self) -> float | None:
        """Mean of the differences so far, or None."""
        return self.total / self.count if self.count else None

    @property
    def low(self) -> float:
        """The mean is higher than this."""
        return float(MEANS[self._below - 1]) if self._below else -CEILING

    @property
    def high(self) -> float:
        """The mean is lower than this."""
        return float(-MEANS[self._above - 1]) if self._above else CEILING

    def _count_excluded(self, logs: Floats) -> int:
        """Capital falls as the mean that is bet against rises, so what is excluded comes first."""
        return int(np.count_nonzero(compute_capital(logs) >= self._bar))
