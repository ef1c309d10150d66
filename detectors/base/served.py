"""What detectors that ask served models share: threshold, version, and a session for each reply."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from typing import Any

from agents.claim_check import ClaimCheck
from agents.identity import identity, plain
from agents.models.client import ModelClient
from agents.models.model import Session
from agents.models.prompt import Prompt
from agents.served_model import catalogue_name, identity_of
from detectors.base.evidence_questions import calibrations_of
from detectors.base.fitted import fitted_for
from detectors.base.judging import judge
from detectors.base.protocol import Detector, DetectorContext, ThresholdProtocol
from detectors.base.thresholds import tuned_threshold
from scenarios.transcript import Frozen, Judgement, TurnView


class ServedDetector(Detector):
    """Judges a reply by served models.

    A detector is made before its models are served. So it finds out threshold and version when they are first
    asked for.

    Args:
        name: the name in reports.
        context: has the models, and the seed of their answers.
        options: the options as given.
        prompts: the prompt files it uses.
        untuned: threshold where none is given or tuned for the model.
        published: whether that is the paper's, for scores that are made as in the paper.
        reading: the threshold's place in `thresholds.yaml`: detector and reading; None: it has none there.
        option: the option that gives the threshold.
        corrections: returns what corrects its scores for a model of the catalogue, if anything.
        asked: the models that it asks, by role. The threshold is tuned for the first one. None: the model of
            the context, or none if there are no prompts.
        code: modules that it judges by and does not import itself: what it searches with.

    Raises:
        UsageError: the model is not in the pool.
    """

    def __init__(
        self,
        name: str,
        context: DetectorContext,
        options: Frozen,
        prompts: Sequence[Prompt],
        *,
        untuned: float,
        published: bool = False,
        reading: tuple[str, str] | None,
        option: str = "threshold",
        corrections: Callable[[str | None], Frozen | Mapping[str, Any] | None] = lambda model: None,
        asked: Mapping[str, ModelClient] | None = None,
        code: Sequence[str] = (),
    ) -> None:
        self.name = name
        self._context = context
        self._in_force = options.model_dump(mode="json")
        self._prompts = prompts
        self._untuned: tuple[float, ThresholdProtocol] = (untuned, "published" if published else "untuned")
        self._place = reading
        self._option = option
        self._corrections = corrections
        client = context.models.get(context.model)
        self._asked = asked if asked is not None else {"model": client} if prompts else {}
        self._code = code or type(self).__module__
        served = (client.endpoint.model for client in self._asked.values())
        self.claim_check: ClaimCheck = ClaimCheck.by(served, prompts)

    @cached_property
    def _decision(self) -> tuple[float, ThresholdProtocol]:
        given = self._in_force[self._option]
        if given is not None:
            return given, "given"
        fitted = fitted_for(self.scoring)
        if fitted is not None:
            return fitted.threshold, "calibrated"
        model = next(map(catalogue_name, self._asked.values()), None)
        tuned = tuned_threshold(*self._place, model) if self._place else None
        if tuned is not None:
            return tuned, "tuned"
        threshold, protocol = self._untuned
        # Corrected scores change the meaning of a threshold.
        return threshold, "tuned" if self._corrections(model) else protocol

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
        models = [catalogue_name(client) for client in self._asked.values()]
        return identity(
            self._code,
            {**self._in_force, self._option: threshold},
            self._prompts,
            {role: identity_of(client) for role, client in self._asked.items()},
            self._context.seed,
            [[calibrations_of(model), plain(self._corrections(model))] for model in models],
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
