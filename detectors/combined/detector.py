"""The detector `combined`."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from pathlib import Path

from hallulab.detectors.base.protocol import DetectorContext
from hallulab.detectors.combined.model import CombinedModel, load_model
from hallulab.detectors.combined.training import train
from hallulab.detectors.features.trained_detector import RuleOptions, TrainedDetector
from hallulab.scenarios.components import read_options
from hallulab.scenarios.labelled import LabelledReply


class CombinedDetector(TrainedDetector[CombinedModel]):
    """Our own: classifiers of words, sentences and replies over what all the cheap methods measure.

    It needs no model server and no weights. It reads EvidenceChain's features (the extended set) and how much
    of the reply is copied from the evidence. docs/methods.md describes the classifiers and how well they do.
    The model in the package learnt from RAGTruth, WiCE and BEGIN.
    """

    def __init__(self, name: str, context: DetectorContext) -> None:
        options = read_options(f"detector {name}", RuleOptions, context.options)
        super().__init__(
            name, options, load_model(Path(options.model)) if options.model else _load_shipped_model()
        )

    def fit(self, replies: Sequence[LabelledReply], seed: int = 0) -> None:
        """See `TrainableDetector.fit`."""
        self._use(train(replies, seed))


SHIPPED = Path(__file__).parent / "trained" / "combined.skops"
"""The model that comes with the package."""


@cache
def _load_shipped_model() -> CombinedModel:
    return load_model(SHIPPED)
