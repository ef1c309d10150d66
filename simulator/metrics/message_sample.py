"""Measures of users' messages, and samples of messages in which they are measured."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import groupby
from typing import Literal

import numpy as np

from hallulab.scenarios.text.wording import format_count
from hallulab.simulator.metrics.messages import Messages, Parts, measure_parts
from hallulab.simulator.statistics.intervals import Floats, Integers

LEAST = 2
"""Messages below which there is no number: a share of one message is 0 or 1, whatever it is."""
_FIRST = ("first_words", "facts_given")
_DIVERSITY = ("near_duplicates", "distinct_1", "distinct_2", "self_bleu", "dispersion")

Statistic = Literal["median", "mean", "share"]
DistanceName = Literal["Wasserstein-1", "Jensen–Shannon", "difference"]


@dataclass(frozen=True)
class Measure:
    """Something that is measured of messages."""

    field: str
    label: str
    statistic: Statistic
    """What is computed of the numbers of messages; a share is a mean of zeros and ones."""
    distance: DistanceName
    """How two sets of messages are compared."""


MEASURES = (
    Measure("first_words", "Words, first message", "median", "Wasserstein-1"),
    Measure("follow_up_words", "Words, follow-up", "median", "Wasserstein-1"),
    Measure("questions", "Questions a message", "mean", "Wasserstein-1"),
    Measure("facts_given", "Facts given unasked", "share", "difference"),
    Measure("pronoun_only", "Only by pronoun", "share", "Jensen–Shannon"),
    Measure("thanks", "Thanks", "share", "Jensen–Shannon"),
    Measure("endings", "Taking leave", "share", "Jensen–Shannon"),
    Measure("assistants_part", "The assistant's part", "share", "Jensen–Shannon"),
    Measure("near_duplicates", "Near duplicates", "share", "Jensen–Shannon"),
    Measure("distinct_1", "Distinct-1", "share", "difference"),
    Measure("distinct_2", "Distinct-2", "share", "difference"),
    Measure("self_bleu", "Self-BLEU", "mean", "difference"),
    Measure("dispersion", "Dispersion", "mean", "difference"),
)


class MessageSample:
    """Messages, by user.

    Args:
        conversations: those without messages are left out.
        vectors: unit vectors of first messages by their text; None: not known.
    """

    def __init__(self, conversations: Sequence[Messages], vectors: Mapping[str, Floats] | None) -> None:
        self._vectors = vectors
        held = sorted((one for one in conversations if one.texts), key=lambda one: one.user)
        self.held = [list(own) for _, own in groupby(held, lambda one: one.user)]
        self.users = len(self.held)
        personas = {own[0].user[:2]: None for own in self.held}
        numbers = dict(zip(personas, range(len(personas)), strict=True))
        self.persona = np.array([numbers[own[0].user[:2]] for own in self.held], dtype=np.int64)
        """Number of each user's persona."""
        self._parts: dict[int, Parts] = {}

    def some(self, users: Sequence[int]) -> MessageSample:
        """Return the sample of some users, by place."""
        return MessageSample([one for place in users for one in self.held[place]], self._vectors)

    @cached_property
    def vectors(self) -> Floats | None:
        """Vectors of the users' first messages, shape (users, dimensions)."""
        if self._vectors is None or not self.held:
            return None
        return np.stack([self._vectors[own[0].texts[0]] for own in self.held])

    def numbers(self, field: str) -> tuple[Floats, Integers]:
        """Return a number for each message that a measure is about, and the place of its user."""
        found = [
            (number, place)
            for place, own in enumerate(self.held)
            for one in (own[:1] if field in _FIRST else own)
            for number in one.counts[field]
        ]
        numbers, places = zip(*found, strict=True) if found else ((), ())
        return np.array(numbers, dtype=np.float64), np.array(places, dtype=np.int64)

    def parts(self, size: int) -> Parts:
        """Return the parts of first messages in numbers of diversity, by part."""
        if size not in self._parts:
            self._parts[size] = measure_parts([own[0].texts[0] for own in self.held], self.vectors, size)
        return self._parts[size]

    def measured(self, measure: Measure) -> tuple[int, int]:
        """Return the numbers of messages that a measure is about, and of their users."""
        if measure.field in _DIVERSITY:
            return self.users, self.users
        numbers, places = self.numbers(measure.field)
        return len(numbers), len(np.unique(places))

    def personas(self, measure: Measure) -> int:
        """Return the number of personas whose messages a measure is about."""
        places = np.arange(self.users) if measure.field in _DIVERSITY else self.numbers(measure.field)[1]
        return len(np.unique(self.persona[places]))

    def reason(self, measure: Measure) -> str | None:
        """Say why a measure has no number; None: it has one."""
        if measure.field in ("near_duplicates", "dispersion") and self.users and self.vectors is None:
            return "no embedding model"
        messages = self.measured(measure)[0]
        if measure.field == "facts_given" and self.users and not messages:
            return "no persona's facts are known"
        return None if messages >= LEAST else f"{format_count(messages, 'message')}; {LEAST} needed"

    def values(self, measure: Measure, weights: Floats, size: int) -> Floats:
        """Compute a measure under weights of users, shape (resamples, users); NaN where undefined.

        Args:
            size: first messages of a sample of diversity.
        """
        if measure.statistic == "median":
            return self._quantiles(measure.field, weights, 0.5)
        with np.errstate(invalid="ignore"):
            if measure.field == "dispersion":
                return self._dispersion(weights)
            if measure.field in _DIVERSITY:
                over, under = (weights @ self.parts(size)[measure.field]).T
            else:
                numbers, places = self.numbers(measure.field)
                over = weights @ np.bincount(places, numbers, self.users)
                under = weights @ np.bincount(places, minlength=self.users)
            values: Floats = over / under
        return values

    def quartiles(self, field: str) -> tuple[float, float]:
        """Return the lower and the upper quartile of a measure."""
        alone = np.ones((1, self.users))
        return float(self._quantiles(field, alone, 0.25)[0]), float(self._quantiles(field, alone, 0.75)[0])

    def _quantiles(self, field: str, weights: Floats, share: float) -> Floats:
        """Return the lowest number that at least this share of the messages does not exceed."""
        numbers, places = self.numbers(field)
        order = np.argsort(numbers, kind="stable")
        reached = np.cumsum(weights[:, places[order]], axis=1)
        at = (reached < share * reached[:, -1:]).sum(axis=1)
        return np.where(reached[:, -1] > 0, numbers[order][np.minimum(at, len(numbers) - 1)], np.nan)

    def _dispersion(self, weights: Floats) -> Floats:
        """Compute the mean cosine distance of two users' first messages."""
        vectors = self.vectors
        assert vectors is not None, "reason() tells"
        own = (weights**2).sum(axis=1)
        # The squared length of a sum of unit vectors is the sum of the cosines of all pairs.
        cosines = ((weights @ vectors) ** 2).sum(axis=1) - own
        pairs = weights.sum(axis=1) ** 2 - own
        spread: Floats = 1 - cosines / np.where(pairs > 0, pairs, np.nan)
        return spread
