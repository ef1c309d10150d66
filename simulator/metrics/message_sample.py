"""The measures of users' messages, and a sample of messages that has their values under weights of users."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import groupby
from typing import Literal

import numpy as np

from hallulab.scenarios.text.wording import format_count
from hallulab.simulator.metrics.diversity import Parts, measure_parts
from hallulab.simulator.metrics.messages import CountedMessages, Messages
from hallulab.simulator.statistics.intervals import Floats, Integers

LEAST = 2
"""Messages below which there is no number: a share of one message is 0 or 1, whatever it is."""
_FIRST = ("first_words", "facts_given")
IN_SAMPLES = ("near_duplicates", "distinct_1", "distinct_2", "self_bleu")
"""Fields of diversity that depend on which messages are measured together."""
_WORDS = ("first_words", "follow_up_words")
_ENGLISH = ("facts_given", "pronoun_only", "thanks", "endings", "assistants_part")
"""Fields whose rules leave out messages in other languages."""
_DIVERSITY = (*IN_SAMPLES, "dispersion")

Statistic = Literal["median", "mean", "share"]
DistanceName = Literal["Wasserstein-1", "Jensen–Shannon", "difference"]


@dataclass(frozen=True)
class Measure:
    """Something that is measured of messages."""

    field: str
    label: str
    statistic: Statistic
    """The statistic of the messages' numbers; a share is a mean of zeros and ones."""
    distance: DistanceName
    """How two sets of messages are compared."""


MEASURES = (
    Measure("first_words", "Words, first message", "median", "Wasserstein-1"),
    Measure("follow_up_words", "Words, follow-up", "median", "Wasserstein-1"),
    Measure("turns", "Turns a conversation", "median", "Wasserstein-1"),
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

    def __init__(
        self, conversations: Sequence[Messages | CountedMessages], vectors: Mapping[str, Floats] | None
    ) -> None:
        self._vectors = vectors
        held = sorted((one for one in conversations if one.counts["questions"]), key=lambda one: one.user)
        self.held = [list(own) for _, own in groupby(held, lambda one: one.user)]
        self.users = len(self.held)
        firsts = [own[0].first_text for own in self.held]
        self.texts = [text for text in firsts if text is not None]
        """The users' first messages."""
        self.has_texts = len(self.texts) == self.users
        """Not where counts alone are known."""
        personas = {own[0].user[:2]: None for own in self.held}
        numbers = dict(zip(personas, range(len(personas)), strict=True))
        self.persona = np.array([numbers[own[0].user[:2]] for own in self.held], dtype=np.int64)
        """Number of each user's persona."""
        self._parts: dict[int, Parts] = {}
        self._numbers: dict[str, tuple[Floats, Integers]] = {}

    @cached_property
    def vectors(self) -> Floats | None:
        """Vectors of the users' first messages, shape (users, dimensions)."""
        if self._vectors is None or not self.has_texts or not self.texts:
            return None
        return np.stack([self._vectors[text] for text in self.texts])

    def numbers(self, field: str) -> tuple[Floats, Integers]:
        """Return a number for each message that a measure is about, and the place of its user.

        Diversity is of texts alone, so the number of each is 0.
        """
        if field in _DIVERSITY:
            return np.zeros(len(self.texts)), np.arange(len(self.texts))
        if field not in self._numbers:
            found = [
                (number, place)
                for place, own in enumerate(self.held)
                for one in (own[:1] if field in _FIRST else own)
                for number in one.counts[field]
            ]
            numbers, places = zip(*found, strict=True) if found else ((), ())
            self._numbers[field] = np.array(numbers, dtype=np.float64), np.array(places, dtype=np.int64)
        return self._numbers[field]

    def parts(self, size: int) -> Parts:
        """Return the parts of first messages in numbers of diversity, by part."""
        if size not in self._parts:
            self._parts[size] = measure_parts(self.texts, self.vectors, size)
        return self._parts[size]

    def measured(self, measure: Measure) -> tuple[int, int]:
        """Return the numbers of messages that a measure is about, and of their users."""
        numbers, places = self.numbers(measure.field)
        return len(numbers), len(np.unique(places))

    def personas(self, measure: Measure) -> int:
        """Return the number of personas whose messages a measure is about."""
        return len(np.unique(self.persona[self.numbers(measure.field)[1]]))

    def reason(self, measure: Measure) -> str | None:
        """Say why a measure has no number; None: it has one."""
        if measure.field in _DIVERSITY and not self.has_texts:
            return "only counts are kept of these messages"
        if measure.field in ("near_duplicates", "dispersion") and self.users and self.vectors is None:
            return "no embedding model"
        if measure.field in _ENGLISH and self.users and not len(self.numbers("thanks")[0]):
            return "rules read English only"
        if measure.field in _WORDS and self.users and not len(self.numbers("first_words")[0]):
            return "words without spaces between them are not counted"
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
            if measure.field in IN_SAMPLES:
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

    def accumulate(self, field: str, support: Floats, weights: Floats) -> Floats:
        """Compute the share of the messages whose numbers are at most each of `support`, which has them all.

        Args:
            field: of a measure.
            support: ascending numbers.
            weights: of the users, shape (resamples, users).

        Returns:
            Shape (resamples, numbers of `support`); NaN where no message has a weight.
        """
        from scipy.sparse import csr_array

        numbers, places = self.numbers(field)
        columns = np.searchsorted(support, numbers)
        found = csr_array((np.ones(len(numbers)), (columns, places)), shape=(len(support), self.users))
        reached = np.cumsum(found @ weights.T, axis=0).T
        with np.errstate(invalid="ignore"):
            shares: Floats = reached / reached[:, -1:]
        return shares

    def _quantiles(self, field: str, weights: Floats, share: float) -> Floats:
        """Return the lowest number that at least this share of the messages does not exceed."""
        support = np.unique(self.numbers(field)[0])
        reached = self.accumulate(field, support, weights)
        return np.where(np.isnan(reached[:, -1]), np.nan, support[(reached < share).sum(axis=1)])

    def _dispersion(self, weights: Floats) -> Floats:
        """Compute the mean cosine distance of two users' first messages."""
        vectors = self.vectors
        assert vectors is not None, "reason() tells"
        own = (weights**2).sum(axis=1)
        # The squared length of a sum of unit vectors is the sum of the cosines of all pairs.
        cosines = ((weights @ vectors) ** 2).sum(axis=1) - own
        pairs = weights.sum(axis=1) ** 2 - own
        # Rounding may leave a little less than 0.
        spread: Floats = np.maximum(1 - cosines / np.where(pairs > 0, pairs, np.nan), 0.0)
        return spread
