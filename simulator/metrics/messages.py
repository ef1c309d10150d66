"""Counts of rules on a user's messages, and their differences.

How much messages differ from each other: near duplicates, distinct words, self-BLEU, dispersion.
All but dispersion depend on the number of messages. So both sides of a comparison are measured in samples of
one size. A message's part in a number is kept apart (numerator, denominator), so that users can be resampled
without a message becoming the duplicate of itself.

Counts of a user's messages: rules on their text alone, so that people's can be compared with them.
The rules are ours. They see no reply, because files of people's messages often have none.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import groupby
from typing import Literal

import numpy as np

from hallulab.agents.users.flaws import role_swap
from hallulab.scenarios.text.items import build_stems_key
from hallulab.scenarios.text.spans import split_sentences, split_words
from hallulab.scenarios.text.wording import format_count
from hallulab.simulator.statistics.intervals import Floats, Integers

FEW = 2
"""Most content words of a message whose subject is a pronoun."""
_ASKS = frozenset(
    (
        *(
            "what",
            "how",
            "why",
            "when",
            "where",
            "which",
            "who",
            "whose",
            "whom",
            "can",
            "could",
            "may",
            "is",
        ),
        *("are", "am", "was", "were", "do", "does", "did", "will", "would", "should", "has", "have"),
    )
)
"""First words of a question: in chats many people leave the question mark out."""
_PRONOUN = re.compile(
    r"\b(?:it|its|it's|they|them|their|he|him|his|she|her"
    r"|(?:this|that|these|those)(?=\s*(?:[?.!,;]|$)|\s+(?:is|are|was|were|do|does|did|can|could|will|would)\b)"
    r"|(?<=is )(?:this|that)|(?<=are )(?:these|those))\b",
    re.IGNORECASE,
)
_THANKS = re.compile(r"\b(?:thanks|thank (?:you|u)|thankyou|thx|cheers|much appreciated)\b", re.IGNORECASE)
_ENDS = re.compile(
    r"\b(?:good)?bye\b|\bsee you\b|\bhave a (?:good|great|nice|lovely)\b"
    r"|\bthat(?:'s| is| was| will be) (?:all|everything)\b(?! (?:you|they|he|she|it))"
    r"|\bno (?:more|further|other) questions\b|\bnothing else\b",
    re.IGNORECASE,
)


@dataclass(frozen=True)
class Messages:
    """The messages of a user in a conversation."""

    user: tuple[str, str, int]
    """Scenario, persona and seed. Their conversations with several chatbots depend on each other."""
    texts: tuple[str, ...]
    """The messages in order; the first one opens the conversation."""
    facts: tuple[str, ...] = ()
    """The persona's facts; empty: not known."""

    @cached_property
    def counts(self) -> Mapping[str, tuple[float, ...]]:
        """A number for each message that a measure is about, by the measure's field."""
        lengths = [float(len(text.split())) for text in self.texts]
        given = compute_facts_given(self.texts[0], self.facts) if self.texts else None
        return {
            "first_words": tuple(lengths[:1]),
            "follow_up_words": tuple(lengths[1:]),
            "questions": tuple(float(count_questions(text)) for text in self.texts),
            "facts_given": () if given is None else (given,),
            "pronoun_only": tuple(float(is_only_pronouns(text)) for text in self.texts[1:]),
            "thanks": tuple(float(_THANKS.search(text) is not None) for text in self.texts),
            "endings": tuple(
                float(_ENDS.search(_replace_curly_apostrophes(text)) is not None) for text in self.texts
            ),
            "assistants_part": tuple(float(role_swap(text) is not None) for text in self.texts),
        }


def count_questions(text: str) -> int:
    """Count the sentences that end with a question mark or begin with a word that asks.

    >>> count_questions("My bus was late. who pays for it? Can I insist")
    2
    """
    found = (region.of(text) for region in split_sentences(text))
    return sum("?" in one or (split_words(one) or [""])[0] in _ASKS for one in found)


def is_only_pronouns(text: str) -> bool:
    """Return whether a message has a pronoun for something, and at most `FEW` content words.

    >>> is_only_pronouns("How is it created?"), is_only_pronouns("Does the bank have to pay it back?")
    (True, False)
    """
    return _PRONOUN.search(_replace_curly_apostrophes(text)) is not None and len(_extract_stems(text)) <= FEW


def compute_facts_given(text: str, facts: Sequence[str]) -> float | None:
    """Return the share of facts at least half of whose content words are in the text; None without facts.

    >>> compute_facts_given("It cost Rs 4,850.", ["The mixer cost Rs 4850", "Her phone is 55501 20114"])
    0.5
    """
    said = _extract_stems(text)
    stems = [found for found in map(_extract_stems, facts) if found]
    return sum(2 * len(found & said) >= len(found) for found in stems) / len(stems) if stems else None


def _extract_stems(text: str) -> set[str]:
    return set(build_stems_key(text).split())


def _replace_curly_apostrophes(text: str) -> str:
    return text.replace("\N{RIGHT SINGLE QUOTATION MARK}", "'")


ALIKE = 0.9
"""Messages are near duplicates from above this cosine of their vectors."""
MOST = 100
"""Most messages of a sample."""
DRAWS = 10
"""Samples where there are more messages than a sample has."""
_ORDER = 4
"""Longest runs of words of BLEU."""
_SEED = 20_260

Parts = Mapping[str, Floats]
"""Field of a measure → numerators and denominators of the messages, shape (messages, 2)."""


def measure_parts(texts: Sequence[str], vectors: Floats | None, size: int) -> Parts:
    """Measure messages in samples of `size`; a number is the sum of numerators over that of denominators.

    - `near_duplicates`: messages with a cosine above `ALIKE` to another one.
    - `distinct_1`, `distinct_2`: different words, and pairs of words, over all of them (Li et al. 2016, A
      diversity-promoting objective function, section 5.1). Each of n equal words counts 1/n.
    - `compute_self_bleu`: the mean of `compute_sentence_bleu` of each message against the others (Zhu et al.
      2018, Texygen, section 3.2).

    Args:
        texts: the messages.
        vectors: their unit vectors; None: not known, and `near_duplicates` is missing.
        size: messages of a sample, at least 2.
    """
    said = [split_words(text) for text in texts]
    names = ["distinct_1", "distinct_2", "self_bleu"] + (["near_duplicates"] if vectors is not None else [])
    found = {name: np.zeros((len(texts), 2)) for name in names}
    for chosen in _draw_samples(len(texts), size):
        sample = [said[place] for place in chosen]
        for n, name in ((1, "distinct_1"), (2, "distinct_2")):
            found[name][chosen] += _count_distinct(sample, n)
        found["self_bleu"][chosen] += [(score, 1) for score in compute_self_bleu(sample)]
        if vectors is not None:
            cosines = vectors[chosen] @ vectors[chosen].T
            np.fill_diagonal(cosines, -1)
            found["near_duplicates"][chosen] += [(own.max() > ALIKE, 1) for own in cosines]
    return found


def _draw_samples(messages: int, size: int) -> Iterator[Integers]:
    """Yield places of messages: all of them, or `DRAWS` samples, the same ones for equal arguments."""
    size = min(size, MOST)
    if messages <= size:
        yield np.arange(messages)
        return
    generator = np.random.default_rng(_SEED)
    for _ in range(DRAWS):
        yield generator.choice(messages, size, replace=False)


def _count_distinct(sample: Sequence[Sequence[str]], n: int) -> list[tuple[float, float]]:
    held = [_count_runs(said, n) for said in sample]
    total = sum(held, Counter[tuple[str, ...]]())
    return [(sum(count / total[run] for run, count in own.items()), own.total()) for own in held]


def compute_self_bleu(sample: Sequence[Sequence[str]]) -> list[float]:
    """Score each message against all others: 1 of an equal one, 0 of words that no other has."""
    held = [[_count_runs(said, n) for said in sample] for n in range(1, _ORDER + 1)]
    lengths = [len(said) for said in sample]
    most = [_find_two_most(counts) for counts in held]
    scores = []
    for place, length in enumerate(lengths):
        others = lengths[:place] + lengths[place + 1 :]
        pairs = []
        for counts, best in zip(held, most, strict=True):
            own = counts[place]
            # The highest count among the others is the second one where the message itself has the first.
            hits = sum(min(count, best[run][best[run][0] == count]) for run, count in own.items())
            pairs.append((hits, own.total()))
        scores.append(compute_sentence_bleu(pairs, length, others))
    return scores


def compute_sentence_bleu(pairs: Sequence[tuple[int, int]], length: int, others: Sequence[int]) -> float:
    """Compute BLEU of a sentence, smoothed by adding one to runs of two and more words.

    Papineni et al. 2002, BLEU, section 2.3; Lin and Och 2004, ORANGE, section 4. A sentence of fewer than
    four words has no longer runs than itself.

    Args:
        pairs: runs of 1, 2, … words that a reference has, too, and all of them.
        length: words of the sentence.
        others: words of each reference.
    """
    if not pairs[0][0]:
        return 0.0
    used = [(hits + (n > 0), total + (n > 0)) for n, (hits, total) in enumerate(pairs) if total]
    closest = min(others, key=lambda other: (abs(other - length), other))
    brevity = min(1.0, math.exp(1 - closest / length))
    return brevity * math.exp(math.fsum(math.log(hits / total) for hits, total in used) / len(used))


def _count_runs(said: Sequence[str], n: int) -> Counter[tuple[str, ...]]:
    return Counter(tuple(said[at : at + n]) for at in range(len(said) - n + 1))


def _find_two_most(counts: Sequence[Counter[tuple[str, ...]]]) -> dict[tuple[str, ...], tuple[int, int]]:
    """Return for each run the highest count in a message and the next one (equal, or 0)."""
    found: dict[tuple[str, ...], tuple[int, int]] = {}
    for own in counts:
        for run, count in own.items():
            first, second = found.get(run, (0, 0))
            found[run] = (count, first) if count > first else (first, max(second, count))
    return found


LEAST = 2
"""Messages below which there is no number: a share of one message is 0 or 1, whatever it is."""
_FIRST = ("first_words", "facts_given")
IN_SAMPLES = ("near_duplicates", "distinct_1", "distinct_2", "self_bleu")
"""Fields of diversity that depend on which messages are measured together."""
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
