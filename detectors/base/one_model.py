"""What detectors share that ask one served model: threshold, version, and a session for each reply."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence

from agents.claim_check import ClaimCheck
from agents.identity import identity
from agents.models.model import Session
from agents.models.prompt import Prompt
from agents.served_model import catalogue_name, identity_of
from detectors.base.evidence_questions import calibrations_of
from detectors.base.judging import judge
from detectors.base.protocol import DetectorContext
from detectors.base.thresholds import choose_threshold, tuned_threshold
from scenarios.transcript import Frozen, Judgement, TurnView


class ThresholdOptions(Frozen):
    """Options of a detector that decides by a threshold."""

    threshold: float | None = None
    """Score from which a reply is flagged. None: tuned for the model where that was done, else the untuned
    one."""


class OneModelDetector(ABC):
    """Judges a reply with one served model.

    Args:
        name: reported under.
        context: has the model, and the seed of its answers.
        options: as they were given.
        prompts: the prompt files it uses.
        reading: the threshold's place in `thresholds.yaml`: detector and reading.
        untuned: threshold where none is given or tuned for the model.
        corrects: whether its scores are corrected for the models that `calibration.yaml` has.
        learnt: what else it has learnt for the served model, which counts as a correction.
        code: its modules, where its own does not import all that it judges by: what it searches with.

    Raises:
        UsageError: the model is not in the pool.
    """

    def __init__(
        self,
        name: str,
        context: DetectorContext,
        options: ThresholdOptions,
        prompts: Sequence[Prompt],
        *,
        reading: tuple[str, str],
        untuned: float,
        corrects: bool = False,
        learnt: Frozen | None = None,
        code: Sequence[str] = (),
    ) -> None:
        self.name = name
        self._context = context
        client = context.models.get(context.model)
        model = catalogue_name(client)
        self._threshold, self.threshold_protocol = choose_threshold(
            options.threshold,
            tuned_threshold(*reading, model),
            untuned,
            corrected=learnt is not None or (corrects and bool(calibrations_of(model))),
        )
        self.threshold: float | None = self._threshold
        self.claim_check = ClaimCheck.by((client.endpoint.model,), prompts)
        """See `detectors.base.protocol.judging`."""
        self.version = identity(
            code or type(self).__module__,
            options.model_copy(update={"threshold": self._threshold}),
            prompts,
            {"model": identity_of(client)},
            context.seed,
            [calibrations_of(model), learnt.model_dump(mode="json") if learnt else None],
        )

    async def detect(self, view: TurnView) -> Judgement:
        """See `Detector.detect`."""
        session = self._context.models.session(self.name, self._context.seed, self._context.model)
        return await judge(session, lambda: self._judge(session, view))

    @abstractmethod
    async def _judge(self, session: Session, view: TurnView) -> Judgement:
        """The judgement, but for its ledger.

        Raises:
            Abstention: there is nothing to judge, or nothing to judge by.
            HallulabError: the model gave no answer.
        """
