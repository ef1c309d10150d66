"""A confidence sequence: intervals for a mean that hold at all times together.

An ordinary 95% interval that is looked at after each batch, until it suits, misses far more often than 5% of
the time. The intervals here hold all together, at every person, with the promised probability.

The method is betting (Waudby-Smith and Ramdas 2024, Estimating means of bounded random variables by betting,
JRSS B 86(1), Theorem 3: hedged capital, and its intersection over time). Against "the mean is at most m"
somebody stakes on each next person: the capital is multiplied by 1 + f (d - m) / (c + m), where d in [-c, c]
is the person's difference. If the mean is at most m, no stake 0 < f < 1 gains in expectation, so by Ville's
inequality the capital ever reaches 2 / level with a probability of at most level / 2. Then m is excluded, for
good. Against "at least m" it is the mirror image.

No stake is guessed: the capital is split evenly over a grid of stakes (Cover's universal portfolio), which is
a bet as well. Each stake's capital falls as m rises, so a test that excludes a mean excludes those below it.

Nothing is assumed of the differences but their bounds, and that each person's has the same mean given those
before: not their shape, not their variance. `docs/decide.md` has the methods that were compared.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

CEILING = 3.0
"""Largest HPT of a person that counts; more counts as this much. Differences are between ± this."""


STAKES = np.concatenate([[0.05, 0.2], ((np.arange(18) + 0.5) / 18) ** 0.25])
"""Shares of the largest stake that can never lose everything. Most are large, because differences far smaller
than the bounds decide soonest with them; the small ones narrow the interval after many persons."""


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


class _OneSide:
    """The excluded values from below; of negated differences, from above."""

    def __init__(self, bar: float) -> None:
        self._bar = bar
        self._logs = np.zeros((len(MEANS), len(STAKES)))
        self._excluded = 0

    def add(self, difference: float) -> None:
        self._logs += compute_growth(np.array(difference), MEANS)
        while self._excluded < len(MEANS) and compute_capital(self._logs[self._excluded]) >= self._bar:
            self._excluded += 1

    @property
    def bound(self) -> float:
        """The highest mean that is excluded."""
        return float(MEANS[self._excluded - 1]) if self._excluded else -CEILING


class MeanSequence:
    """Intervals for a mean that hold at all times together, each inside those before it.

    Args:
        level: Probability that one of all intervals misses the mean, at most.

    >>> sequence = MeanSequence(level=0.05)
    >>> for _ in range(40):
    ...     sequence.add(0.5)
    >>> sequence.low, sequence.high
    (0.13, 0.77)
    """

    def __init__(self, level: float) -> None:
        self.count = 0
        self.total = 0.0
        self._rising, self._falling = (_OneSide(compute_bar(level)) for _ in range(2))

    def add(self, difference: float) -> None:
        """Take the next person's difference.

        Raises:
            ValueError: it is outside of ± `CEILING`.
        """
        if not -CEILING <= difference <= CEILING:
            raise ValueError(f"the difference {difference} is outside of ±{CEILING}")
        self.count += 1
        self.total += difference
        self._rising.add(difference)
        self._falling.add(-difference)

    @property
    def mean(self) -> float | None:
        """Mean of the differences so far, or None."""
        return self.total / self.count if self.count else None

    @property
    def low(self) -> float:
        """The mean is higher than this."""
        return self._rising.bound

    @property
    def high(self) -> float:
        """The mean is lower than this."""
        return -self._falling.bound
