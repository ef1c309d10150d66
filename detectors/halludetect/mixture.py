"""Estimate how likely a sentence, and a reply, is hallucinated, by a small learnt mixture of measurements.

No single sign works for every kind of reply. On replies of small chatbots the model's answer says most; on
long replies of strong models words alone do. So logistic regressions weigh both. They are learnt over several
data sets together (`benchmarks/train_mixture.py`); `mixture.yaml` holds the weights by model.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path

import yaml
from pydantic import TypeAdapter

from hallulab.scenarios.text.spans import compute_unknown_share, split_words
from hallulab.scenarios.transcript import Frozen

FILE = Path(__file__).with_name("mixture.yaml")
"""The learnt weights: the catalogue's name of a model → weights."""
_LENGTHS = (3, 40)
"""Smallest and largest number of words that counts; beyond them length says nothing more."""
_KNOWN_ENOUGH = 0.45
"""A share of new words up to this is usual in a true sentence."""
_FEW_WORDS = 8
"""Added to a reply's number of words, so that three new words in a short reply (`You can call`) count
less."""
_WORST = 3
"""Most sentences of a reply that are weighed: small doubts about each of twenty would make a certainty."""
_ALMOST = 1e-3
"""Probabilities are kept this far from 0 and 1: a one-token answer is not surer than that."""


class LogisticWeights(Frozen):
    """A logistic regression over few named numbers."""

    intercept: float
    """Log-odds where all are 0."""
    weights: dict[str, float]
    """Log-odds for one more of each."""

    def log_odds(self, measured: Mapping[str, float]) -> float:
        """Return the weighted sum of the measurements.

        Raises:
            KeyError: a measurement that has a weight is missing.
        """
        return self.intercept + sum(weight * measured[name] for name, weight in self.weights.items())


class Mixture(Frozen):
    """Weights for a sentence, and for its reply."""

    sentence: LogisticWeights
    """Weights of `measure_sentence`."""
    reply: LogisticWeights
    """Weights of `measure_reply`."""


def measure_sentence(
    sentence: str, unsupported: float, known: set[str], misattributed: float
) -> dict[str, float]:
    """Measure what the mixture weighs of a sentence.

    Args:
        unsupported: the model's probability that the evidence does not say it.
        known: words of the evidence and of the user, in lower case.
        misattributed: how far the evidence has an item of it for something else, 0 to 1
            (`wrong_items.explanation.Signals`).

    Returns:
        unsupported: that probability's log-odds; length: natural logarithm of its number of words; novelty:
        how far the share of words that are not known exceeds the usual one; misattributed: as given.
    """
    length = min(max(len(split_words(sentence)), _LENGTHS[0]), _LENGTHS[1])
    return {
        "unsupported": log_odds(unsupported),
        "length": math.log(length),
        "novelty": max(0.0, (compute_unknown_share(sentence, known) or 0.0) - _KNOWN_ENOUGH),
        "misattributed": misattributed,
    }


def measure_reply(reply: str, sentences: Sequence[float], evidence: set[str]) -> dict[str, float]:
    """Measure what the mixture weighs of a reply.

    Args:
        sentences: log-odds of its sentences that claim something; at least one.
        evidence: words of the evidence, in lower case.

    Returns:
        any: log-odds that one of the three worst sentences is wrong, if they were independent; unknown:
        number of words that the evidence lacks, divided by the number of all words plus `_FEW_WORDS`.
    """
    found = split_words(reply)
    unknown = sum(word not in evidence for word in found)
    clean = math.prod(1.0 - compute_probability(odds) for odds in sorted(sentences, reverse=True)[:_WORST])
    return {"any": log_odds(1.0 - clean), "unknown": unknown / (len(found) + _FEW_WORDS)}


def log_odds(probability: float) -> float:
    """Return ln(p / (1 − p)) of a probability kept away from 0 and 1."""
    kept = min(max(probability, _ALMOST), 1.0 - _ALMOST)
    return math.log(kept / (1.0 - kept))


def compute_probability(odds: float) -> float:
    """Return the probability of given log-odds, in [0, 1]."""
    return 1.0 / (1.0 + math.exp(-odds)) if odds >= 0 else 1.0 - 1.0 / (1.0 + math.exp(odds))


def find_mixture(model: str | None) -> Mixture | None:
    """Return the mixture learnt for a model of the catalogue, or None."""
    return _load_mixtures().get(model or "")


@cache
def _load_mixtures() -> Mapping[str, Mixture]:
    found = yaml.safe_load(FILE.read_text(encoding="utf-8")) or {}
    return TypeAdapter(dict[str, Mixture]).validate_python(found)
