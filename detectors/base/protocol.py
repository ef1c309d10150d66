"""What a detector is."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar, Literal

from hallulab.agents.claim_check import ClaimCheck, read_claim_check
from hallulab.agents.models.model import ModelPool
from hallulab.scenarios.labelled import LabelledReply
from hallulab.scenarios.transcript import Judgement, TurnView

ThresholdProtocol = Literal["published", "untuned", "tuned", "calibrated", "given"]
"""Where a threshold comes from. `published`: the paper, and scores are made as there. `untuned`: the paper,
though scores are not, or even odds. `tuned`: a fit for this model on our development data. `calibrated`:
`hallulab calibrate`. `given`: the options."""


@dataclass(frozen=True)
class Traits:
    """Properties of a detector that matter to whoever runs it."""

    needs_model: bool = True
    """Whether it asks the served model; no model is started for a detector that does not."""
    probabilities: bool = True
    """Whether its scores are meant as probabilities."""
    batch: bool = False
    """Whether `detect_many` judges many replies faster than `detect` one by one."""
    reads_origin: bool = False
    """Whether its options ask who wrote a reply; `TurnView.origin` then says so, if the data does."""


class Detector(ABC):
    """Judges replies. Every detector is a subclass, including those of other people.

    A detector is made before any model is served. If its `threshold` or `version` depends on the served
    model, it finds them out when they are first asked for.
    """

    VERSION: ClassVar[int] = 1
    """Raised by the author when verdicts change for a reason that code, options, prompts and models do not
    show. Part of `version`."""
    name: str
    """The name under which it is registered and reported."""
    version: str
    """Hash of all that changes its verdicts: options, prompts, thresholds, model names, seed and code. A
    resumed run keeps only the verdicts of this version."""
    scoring: str | None = None
    """Hash of all that changes its scores: what `version` is made of, without the threshold. None: its
    threshold cannot be calibrated."""
    threshold: float | None = None
    """Score from which a reply is flagged; None if there is none. Some topics have stricter ones."""
    threshold_protocol: ThresholdProtocol = "given"
    """Where the threshold comes from. The paper's threshold on scores corrected for the model counts as
    tuned."""
    traits: Traits = Traits()
    """Its properties."""
    warnings: tuple[str, ...] = ()
    """Sentences that a user should read before relying on it. They may depend on the served models."""
    claim_check: ClaimCheck | None = None
    """The models that it judges by and their prompt files. None means the served model, if it needs one, with
    unknown prompts."""

    @abstractmethod
    async def detect(self, view: TurnView) -> Judgement:
        """Judge `view.reply` against the evidence in `view`.

        A model's failure is an outcome: this method does not raise for it.
        """

    def use_calibrated(self, threshold: float) -> None:
        """Judge with a threshold that was fitted for `scoring`.

        Raises:
            NotImplementedError: `scoring` is None.
        """
        raise NotImplementedError(f"the threshold of {self.name} cannot be calibrated")

    async def detect_many(self, views: Sequence[TurnView]) -> list[Judgement]:
        """Judge every reply; the judgements and their order are those that `detect` gives."""
        return [await self.detect(view) for view in views]


def describe_judging(detector: Detector, served: str) -> ClaimCheck:
    """Return the models that the detector judges by and their prompt files, see `Detector.claim_check`.

    Args:
        served: the name under which the detectors' model is served.

    Raises:
        UsageError: the attribute has another type.
    """
    told = read_claim_check(f"detector {detector.name}", detector)
    if told is None:
        told = ClaimCheck.by((served,) if detector.traits.needs_model else (), ())
    method = f"{type(detector).__module__}.{type(detector).__qualname__}"
    return told.model_copy(update={"methods": (method,)})


class TrainableDetector(Detector):
    """A detector that learns from labelled replies; without training it uses the model in the package."""

    @abstractmethod
    def fit(self, replies: Sequence[LabelledReply], seed: int = 0) -> None:
        """Learn from `replies`, and choose thresholds on groups that learning did not see.

        Forget all that was learnt before: `bench --folds` relies on that.

        Raises:
            UsageError: the replies lack what is learnt from (spans, or one of the two classes).
        """


@dataclass(frozen=True)
class DetectorContext:
    """What the factory of a detector is given."""

    models: ModelPool
    """The models by name; `models.get()` is the default one. They are served when the detector judges."""
    model: str | None = None
    """Name in `models` of the model for this role; None: the default one."""
    seed: int = 0
    """Base seed of every sampled answer."""
    identity_thresholds: Mapping[str, float] = field(default_factory=dict)
    """The scenario's stricter thresholds by topic label (MetaRAG section 3.6)."""
    options: Mapping[str, Any] = field(default_factory=dict)
    """The detector's own options from the experiment file."""
