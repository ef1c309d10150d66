"""What a detector is."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from agents.claim_check import ClaimCheck, claim_check_of
from agents.models.model import ModelPool
from scenarios.labelled import LabelledReply
from scenarios.transcript import Judgement, TurnView

ThresholdProtocol = Literal["published", "tuned", "given"]
"""A threshold is the paper's, or was fitted on development data, or was given in the options."""


@dataclass(frozen=True)
class Traits:
    """What a detector is like, for those who run it."""

    needs_model: bool = True
    """Whether it asks the served model; else none is started for it."""
    probabilities: bool = True
    """Whether its scores are meant as probabilities."""
    batch: bool = False
    """Whether `detect_many` judges many replies faster than `detect` one by one."""
    reads_origin: bool = False
    """Whether its options ask who wrote a reply: then `TurnView.origin` says so, where the data does."""


class Detector(ABC):
    """Judges replies. All detectors are subclasses, those of other people, too.

    It is made before any model is served. What `threshold` and `version` depend on of the served model is
    known when it judges: such a detector finds them out when they are first asked for.
    """

    name: str
    """The name it is registered and reported under."""
    version: str
    """Hash of all that changes its verdicts: options, prompts, thresholds, model names, seed and code.
    Resuming takes up verdicts of this version only."""
    threshold: float | None = None
    """Score from which a reply is flagged, but for stricter ones by topic; None where there is none."""
    threshold_protocol: ThresholdProtocol = "given"
    """Where the threshold comes from. The paper's, with scores corrected for the model, counts as tuned."""
    traits: Traits = Traits()
    """What it is like."""
    claim_check: ClaimCheck | None = None
    """The models that it judges by and their prompt files; None: the served model, if it needs one, by
    prompts that nobody knows."""

    @abstractmethod
    async def detect(self, view: TurnView) -> Judgement:
        """Judge `view.reply` against the evidence in `view`.

        It does not raise for a model's failure: that is an outcome.
        """

    async def detect_many(self, views: Sequence[TurnView]) -> list[Judgement]:
        """Judge every reply: the same judgements, in the same order, that `detect` gives for each."""
        return [await self.detect(view) for view in views]


def judging(detector: Detector, served: str) -> ClaimCheck:
    """The models that the detector judges by and their prompt files, see `Detector.claim_check`.

    Args:
        served: the name under which the detectors' model is served.

    Raises:
        UsageError: the attribute is something else.
    """
    told = claim_check_of(f"detector {detector.name}", detector)
    if told is not None:
        return told
    return ClaimCheck.by((served,) if detector.traits.needs_model else (), ())


class TrainableDetector(Detector):
    """A detector that learns from labelled replies; without training it uses the model it comes with."""

    @abstractmethod
    def fit(self, replies: Sequence[LabelledReply], seed: int = 0) -> None:
        """Learn from `replies`, and choose thresholds on groups that were held out of it.

        Replaces all that was learnt before, as if the detector were new: `bench --folds` counts on that.

        Raises:
            UsageError: the replies lack what is learnt from (spans, or one of the two classes).
        """


@dataclass(frozen=True)
class DetectorContext:
    """What a detector's factory is given."""

    models: ModelPool
    """The models by name; `models.get()` is the default one. They are served when the detector judges."""
    model: str | None = None
    """Name in `models` of the model that plays this role; None: the default one."""
    seed: int = 0
    """Base seed of every sampled answer."""
    identity_thresholds: Mapping[str, float] = field(default_factory=dict)
    """The scenario's stricter thresholds by topic label (MetaRAG section 3.6)."""
    options: Mapping[str, Any] = field(default_factory=dict)
    """The detector's own options from the experiment file."""
