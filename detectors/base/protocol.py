"""What a detector is."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, Protocol, runtime_checkable

from agents.claim_check import ClaimCheck, claim_check_of
from agents.models.model import ModelPool
from scenarios.labelled import LabelledReply
from scenarios.transcript import Judgement, TurnView

ThresholdProtocol = Literal["published", "tuned", "given"]
"""A threshold is the paper's, or was fitted on development data, or was given in the options."""


class Detector(Protocol):
    """Judges one reply at a time. `detect` does not raise for a model's failure: that is an outcome."""

    name: str
    """The name it is registered and reported under."""
    version: str
    """Hash of all that changes its verdicts: options, prompts, thresholds, model names, seed and code.
    Resuming takes up verdicts of this version only."""
    threshold: float | None
    """Score from which a reply is flagged, but for stricter ones by topic; None where there is none."""

    threshold_protocol: ThresholdProtocol
    """Where the threshold comes from. The paper's, with scores corrected for the model, counts as tuned."""

    async def detect(self, view: TurnView) -> Judgement:
        """Judge `view.reply` against the evidence in `view`."""
        ...


@runtime_checkable
class BatchDetector(Detector, Protocol):
    """A detector that asks no model server and judges many replies at once faster than one by one."""

    def detect_batch(self, views: Sequence[TurnView]) -> list[Judgement]:
        """Judge every reply; the same judgements, in the same order, that `detect` gives for each."""
        ...


def asks_a_model(detector: Detector) -> bool:
    """Whether the detector needs the served model: its own attribute `asks_a_model` says so.

    Without that attribute it does, unless it judges in batches.
    """
    return bool(getattr(detector, "asks_a_model", not isinstance(detector, BatchDetector)))


def judging(detector: Detector, served: str) -> ClaimCheck:
    """The models that the detector judges by and their prompt files: its attribute `claim_check` tells.

    Without that attribute it is the served model, if it asks one, by prompts that nobody knows.

    Args:
        served: the name under which the detectors' model is served.

    Raises:
        UsageError: the attribute is something else.
    """
    told = claim_check_of(f"detector {detector.name}", detector)
    if told is not None:
        return told
    return ClaimCheck.by((served,) if asks_a_model(detector) else (), ())


def scores_are_probabilities(detector: Detector) -> bool:
    """Whether a score is meant as a probability; it is, unless the attribute of this name says otherwise."""
    return bool(getattr(detector, "scores_are_probabilities", True))


@runtime_checkable
class TrainableDetector(Detector, Protocol):
    """A detector that learns from labelled replies; without training it uses the model it comes with."""

    def fit(self, replies: Sequence[LabelledReply], seed: int = 0) -> None:
        """Learn from `replies`, and choose thresholds on groups that were held out of it.

        Replaces all that was learnt before, as if the detector were new: `bench --folds` counts on that.

        Raises:
            UsageError: the replies lack what is learnt from (spans, or one of the two classes).
        """
        ...


@dataclass(frozen=True)
class DetectorContext:
    """What a detector's factory is given."""

    models: ModelPool
    """The served models by name; `models.get()` is the default one."""
    model: str | None = None
    """Name in `models` of the model that plays this role; None: the default one."""
    seed: int = 0
    """Base seed of every sampled answer."""
    identity_thresholds: Mapping[str, float] = field(default_factory=dict)
    """The scenario's stricter thresholds by topic label (MetaRAG section 3.6)."""
    options: Mapping[str, Any] = field(default_factory=dict)
    """The detector's own options from the experiment file."""
