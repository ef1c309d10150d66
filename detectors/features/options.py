"""Options of the six detectors."""

from __future__ import annotations

from pydantic import Field

from detectors.features.features import Attribution, FeatureSet
from detectors.features.risk import Context
from scenarios.transcript import Frozen


class RuleOptions(Frozen):
    """Of the four methods without training, and of `combined`."""

    threshold: float | None = Field(default=None, ge=0.0, le=1.0)
    """Score from which a reply is flagged; None: the one that was tuned."""
    attribution: Attribution = "tfidf"
    """By which score a sentence is attributed to a chunk; TF-IDF is the paper's best (Table 9)."""
    model: str | None = None
    """File of a model trained elsewhere; None: the one that comes with the package."""


class TrainedOptions(RuleOptions):
    """Of `evidence-chain-lr` and `evidence-chain-rf`."""

    features: FeatureSet = "extended"
    """The paper's features, or ours as well."""
    context: tuple[Context, ...] = ("task",)
    """What is read of a reply's origin, when the detector is trained. Of a chatbot's reply only the task is
    known; the rest needs labelled replies, and counts as never seen where it is missing."""
