"""What detectors that ask served models share: threshold, version, and a session for each reply."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from hallulab.agents.models.client import ModelClient
from hallulab.agents.models.model import Session
from hallulab.agents.models.prompt import Prompt
from hallulab.agents.served_model import ClaimCheck, find_catalogue_name, identify_model
from hallulab.agents.versions import compute_version, make_plain
from hallulab.detectors.base.judging import judge
from hallulab.detectors.base.protocol import Detector, DetectorContext, ThresholdProtocol
from hallulab.detectors.base.questions import list_calibrations
from hallulab.detectors.base.thresholds import find_fitted, find_tuned_threshold
from hallulab.scenarios.transcript import Frozen, Judgement, TurnView


@dataclass(frozen=True)
class Scale:
    """What the scores of a detector mean: how they are made, and the threshold that belongs to them."""

    prompts: Sequence[Prompt]
    """The prompt files that they are made with."""
    untuned: float
    """Threshold where none is given or tuned for the model."""
    published: bool = False
    """Whether that is the paper's, for scores that are made as in the paper."""
    place: tuple[str, str] | None = None
    """The threshold's place in `thresholds.yaml`: detector and reading; None: it has none there."""
    corrections: Frozen | Mapping[str, Any] | None = None
    """What was learnt to correct them for the served model; None or empty: nothing."""
    in_force: Mapping[str, Any] = field(default_factory=dict)
    """The options that depend on the model, as they are in force."""


class ServedDetector(Detector):
    """Judges a reply by served models.

    A detector is made before its models are served. So it finds out what depends on them (the scale of its
    scores, threshold and version) when they are first asked for.

    Args:
        name: the name in reports.
        context: has the models, and the seed of their answers.
        options: the options as given.
        scale: returns the scale of its scores, once the models are known.
        option: the option that gives the threshold.
        asked: the models that it asks, by role. The threshold is tuned for the first one. None: the model of
            the context.
        judging: the roles of those that judge; None: all.

    Raises:
        UsageError: the model is not in the pool.
    """

    def __init__(
        self,
        name: str,
        context: DetectorContext,
        options: Frozen,
        scale: Callable[[], Scale],
        *,
        option: str = "threshold",
        asked: Mapping[str, ModelClient] | None = None,
        judging: Sequence[str] | None = None,
    ) -> None:
        self.name = name
        self._context = context
        self._given = options.model_dump(mode="json")
        self._find_scale = scale
        self._option = option
        self._asked = {"model": context.models.get(context.model)} if asked is None else asked
        self._judging = tuple(self._asked) if judging is None else judging

    @cached_property
    def scale(self) -> Scale:
        """The scale of its scores with the served models."""
        return self._find_scale()

    @cached_property
    def claim_check(self) -> ClaimCheck:  # type: ignore[override] # a cached property is writable
        """See `Detector.claim_check`."""
        prompts = self._judging_prompts(self.scale)
        models = (self._asked[role].endpoint.model for role in self._judging if prompts)
        return ClaimCheck.by(models, prompts)

    def _judging_prompts(self, scale: Scale) -> Sequence[Prompt]:
        """Return the prompts by which models judge; by default all."""
        return scale.prompts

    @cached_property
    def _decision(self) -> tuple[float, ThresholdProtocol]:
        given = self._given[self._option]
        if given is not None:
            return given, "given"
        fitted = find_fitted(self.scoring)
        if fitted is not None:
            return fitted.threshold, "calibrated"
        scale = self.scale
        model = next(map(find_catalogue_name, self._asked.values()), None)
        tuned = find_tuned_threshold(*scale.place, model) if scale.place else None
        if tuned is not None:
            return tuned, "tuned"
        # Corrected scores change the meaning of a threshold.
        if scale.corrections:
            return scale.untuned, "tuned"
        return scale.untuned, "published" if scale.published else "untuned"

    @cached_property
    def threshold(self) -> float:  # type: ignore[override] # a cached property is writable
        """See `Detector.threshold`."""
        return self._decision[0]

    @cached_property
    def threshold_protocol(self) -> ThresholdProtocol:  # type: ignore[override] # likewise
        """See `Detector.threshold_protocol`."""
        return self._decision[1]

    @cached_property
    def version(self) -> str:  # type: ignore[override] # likewise
        """See `Detector.version`."""
        return self._identity(self.threshold)

    @cached_property
    def scoring(self) -> str:  # type: ignore[override] # likewise
        """See `Detector.scoring`."""
        return self._identity(None)

    def _identity(self, threshold: float | None) -> str:
        scale = self.scale
        return compute_version(
            type(self).__module__,
            self.VERSION,
            {**self._given, **scale.in_force, self._option: threshold},
            scale.prompts,
            {role: identify_model(client) for role, client in self._asked.items()},
            self._context.seed,
            [
                [list_calibrations(find_catalogue_name(client)) for client in self._asked.values()],
                make_plain(scale.corrections),
            ],
        )

    def use_calibrated(self, threshold: float) -> None:
        """See `Detector.use_calibrated`."""
        self.threshold = threshold
        self.threshold_protocol = "calibrated"
        self.version = self._identity(threshold)

    async def detect(self, view: TurnView) -> Judgement:
        """See `Detector.detect`."""
        session = self._context.models.session(self.name, self._context.seed, self._context.model)
        return await judge(session, lambda: self._judge(session, view))

    @abstractmethod
    async def _judge(self, session: Session, view: TurnView) -> Judgement:
        """Return the judgement without its ledger.

        Raises:
            Abstention: there is nothing to judge, or nothing to judge by.
            HallulabError: the model gave no answer.
        """
