"""Options of the detectors that learn."""

from __future__ import annotations

from detectors.evidence_chain.risk import Context
from detectors.features.features import FeatureSet
from detectors.features.options import RuleOptions


class TrainedOptions(RuleOptions):
    """Of `evidence-chain-lr` and `evidence-chain-rf`."""

    features: FeatureSet = "extended"
    """The paper's features, or ours as well."""
    context: tuple[Context, ...] = ("task",)
    """What is read of a reply's origin, when the detector is trained. Of a chatbot's reply only the task is
    known; the rest needs labelled replies, and counts as never seen where it is missing."""
