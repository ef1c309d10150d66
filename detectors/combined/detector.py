"""The detector `combined`."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from pathlib import Path

from pydantic import Field

from detectors.combined.model import CombinedModel, load_model
from detectors.combined.training import train
from detectors.evidence_chain.batch import make_case
from detectors.evidence_chain.features import Attribution
from detectors.evidence_chain.judgements import judge_blocks
from detectors.judging import configuration_version
from detectors.protocol import DetectorContext, ThresholdProtocol
from scenarios.labelled import LabelledReply
from scenarios.options import read_options
from scenarios.recording import digest
from scenarios.transcript import Frozen, Judgement, TurnView


class CombinedOptions(Frozen):
    """Of the detector."""

    threshold: float | None = Field(default=None, ge=0.0, le=1.0)
    """Score from which a reply is flagged; None: the one that was tuned."""
    attribution: Attribution = "tfidf"
    """By which score a sentence is attributed to a chunk."""
    model: str | None = None
    """File of a model trained elsewhere; None: the one that comes with the package."""


class CombinedDetector:
    """Our own: classifiers of words, sentences and replies over what all the cheap methods measure.

    No model server, no weights: what it reads are EvidenceChain's features (the extended set) and how much
    of the reply is copied from the evidence. What the classifiers are and how well they do stands in
    docs/methods.md. The model that comes with the package learnt from RAGTruth, WiCE and BEGIN.
    """

    def __init__(self, name: str, context: DetectorContext) -> None:
        self._options = read_options(f"detector {name}", CombinedOptions, context.options)
        self.name = name
        self._use(load_model(Path(self._options.model)) if self._options.model else _shipped_model())

    @property
    def model(self) -> CombinedModel:
        """What it judges by: `save_model` keeps it."""
        return self._model

    async def detect(self, view: TurnView) -> Judgement:
        """See `Detector.detect`. Abstains when the reply or the evidence has no words."""
        return self.detect_batch([view])[0]

    def detect_batch(self, views: Sequence[TurnView]) -> list[Judgement]:
        """See `BatchDetector.detect_batch`."""
        cases = [make_case(view) for view in views]
        thresholds = self._model.thresholds.model_copy(update={"response": self.threshold})
        return judge_blocks(cases, self._model.score, thresholds, self._options.attribution)

    def fit(self, replies: Sequence[LabelledReply], seed: int = 0) -> None:
        """See `TrainableDetector.fit`."""
        self._use(train(replies, seed))

    def _use(self, model: CombinedModel) -> None:
        self._model = model
        given = self._options.threshold
        self.threshold: float | None = model.thresholds.response if given is None else given
        self.threshold_protocol: ThresholdProtocol = "tuned" if given is None else "given"
        self.version = digest([configuration_version(__name__, self._options), model.identity])[:16]


SHIPPED = Path(__file__).parent / "trained" / "combined.skops"
"""The model that comes with the package."""


@cache
def _shipped_model() -> CombinedModel:
    return load_model(SHIPPED)
