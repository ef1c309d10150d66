"""Options of the detectors that learn."""

from __future__ import annotations

from hallulab.detectors.evidence_chain.risk import Context
from hallulab.detectors.features.features import FeatureSet
from hallulab.detectors.features.options import RuleOptions


class TrainedOptions(RuleOptions):
    """Options of `evidence-chain-lr` and `evidence-chain-rf`."""

    features: FeatureSet = "extended"
    """The paper's features, or ours as well."""
    context: tuple[Context, ...] = ("task",)
    """What is read of a reply's origin, if the detector is trained. For a chatbot's reply only the task is
    known. The rest needs labelled replies; a missing value counts as never seen."""
