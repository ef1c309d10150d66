"""What detectors share that judge by a trained model of words, sentences and replies."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Generic, Protocol, TypeVar

from hallulab.agents.versions import compute_version
from hallulab.detectors.base.fitted import find_fitted
from hallulab.detectors.base.protocol import TrainableDetector, Traits
from hallulab.detectors.features.batch import ReplyWithEvidence, make_case
from hallulab.detectors.features.judgements import judge_blocks
from hallulab.detectors.features.options import RuleOptions
from hallulab.detectors.features.scores import LevelThresholds, Scores
from hallulab.scenarios.transcript import Judgement, TurnView


class TrainedModel(Protocol):
    """The model that a detector judges by."""

    @property
    def thresholds(self) -> LevelThresholds:
        """Scores from which something is flagged."""
        ...

    @property
    def identity(self) -> str:
        """Hash of what it was trained on and with."""
        ...

    def score(self, cases: Sequence[ReplyWithEvidence]) -> Scores:
        """Return the risks of all replies, sentences and words."""
        ...


Model = TypeVar("Model", bound=TrainedModel)


class TrainedDetector(TrainableDetector, Generic[Model]):
    """Judges replies in batches, by the model that it was made with or trained since.

    Args:
        name: the name in reports.
        options: the options as given.
        model: the first model.
    """

    traits = Traits(needs_model=False, batch=True)

    def __init__(self, name: str, options: RuleOptions, model: Model) -> None:
        self.name = name
        self._options = options
        self._use(model)

    @property
    def model(self) -> Model:
        """What it judges by."""
        return self._model

    async def detect(self, view: TurnView) -> Judgement:
        """See `Detector.detect`. Abstains when the reply or the evidence has no words."""
        return (await self.detect_many([view]))[0]

    async def detect_many(self, views: Sequence[TurnView]) -> list[Judgement]:
        """See `Detector.detect_many`."""
        cases = [make_case(view) for view in views]
        thresholds = self._model.thresholds.model_copy(update={"response": self.threshold})
        return judge_blocks(cases, self._model.score, thresholds, self._options.attribution)

    def use_calibrated(self, threshold: float) -> None:
        """See `Detector.use_calibrated`."""
        self.threshold = threshold
        self.threshold_protocol = "calibrated"
        self.version = self._identity(threshold)

    def _use(self, model: Model) -> None:
        self._model = model
        given = self._options.threshold
        self.threshold = model.thresholds.response if given is None else given
        self.threshold_protocol = "tuned" if given is None else "given"
        self.version = self._identity(given)
        self.scoring = self._identity(None)
        fitted = find_fitted(self.scoring) if given is None else None
        if fitted is not None:
            self.use_calibrated(fitted.threshold)

    def _identity(self, threshold: float | None) -> str:
        options = self._options.model_copy(update={"threshold": threshold})
        return compute_version(type(self).__module__, self.VERSION, options, learnt=self._model.identity)
