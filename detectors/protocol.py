"""What a detector is."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, Protocol

from agents.model import ModelPool
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
