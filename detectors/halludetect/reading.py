"""What the readings of HalluDetect's steps share."""

from __future__ import annotations

from typing import Protocol

from pydantic import Field

from hallulab.agents.models.errors import ModelError
from hallulab.agents.models.model import Session
from hallulab.agents.models.prompt import Prompt, load_prompt
from hallulab.detectors.halludetect.evidence import EvidenceContext, gather_grounds
from hallulab.detectors.halludetect.severity import HARMLESS
from hallulab.scenarios.text.spans import Region
from hallulab.scenarios.transcript import Frozen, TurnView


class RatedSentence(Frozen):
    """A possible hallucination after analysis and refinement."""

    text: str
    """The sentence, or the model's quotation if that is not in the reply."""
    region: Region | None
    """Where it stands in the reply."""
    severity: float
    """1 (harmless) to 5 (critical). Of readings that do not grade how much a sentence matters, it is only
    the scale for `probability`."""
    probability: float | None = None
    """Probability that the evidence does not support it, of such readings."""
    reason: str = ""
    """Why, if that is known already."""
    details: dict[str, float | str | None] = Field(default_factory=dict)
    """The results of each step."""

    def without_reason(self, error: ModelError, instead: str) -> RatedSentence:
        """Return the same with the reason `instead`, when the step that words it failed; details keep the
        error.

        The verdict does not depend on that step: what was rated stays rated.
        """
        return self.model_copy(update={"reason": instead, "details": {**self.details, "error": str(error)}})


class DoubledRetrieval:
    """What the paper's steps share: grounds by doubled retrieval and memory; the worst sentence decides.

    Args:
        factor: passages searched for, as a multiple of the turn's own.
        max_characters: most characters of evidence.
    """

    def __init__(self, factor: int, max_characters: int) -> None:
        self._factor = factor
        self._max_characters = max_characters
        self._memory = load_prompt("hallulab.detectors.halludetect", "memory")

    async def ground(self, session: Session, view: TurnView) -> EvidenceContext:
        """See `JudgingStrategy.ground`."""
        return await gather_grounds(
            session, view, self._memory, factor=self._factor, max_characters=self._max_characters
        )

    def overall(self, rated: list[RatedSentence], grounds: EvidenceContext, view: TurnView) -> float:
        """See `JudgingStrategy.overall`."""
        return max((item.severity for item in rated), default=HARMLESS)


class JudgingStrategy(Protocol):
    """Analysis and filtering (B.1.3, B.1.4), done in one of several ways."""

    @property
    def prompts(self) -> tuple[Prompt, ...]:
        """The prompt files it uses."""

    async def ground(self, session: Session, view: TurnView) -> EvidenceContext:
        """Gather the evidence for the reply.

        Raises:
            OperationalError: a model or the knowledge base failed.
        """
        ...

    async def rate(self, session: Session, grounds: EvidenceContext, view: TurnView) -> list[RatedSentence]:
        """Return everything that may be hallucinated, harmless things included, in order.

        Raises:
            ModelError: a step got no usable answer.
        """
        ...

    def overall(self, rated: list[RatedSentence], grounds: EvidenceContext, view: TurnView) -> float:
        """Return the reply's severity, 1 to 5, from what `rate` returned."""
        ...

    async def conclude(
        self, session: Session, grounds: EvidenceContext, kept: list[RatedSentence]
    ) -> list[RatedSentence]:
        """Return the same hallucinations in order, each with its reason (B.1.5); `kept` is not empty.

        If the model gives none, that is no failure: see `RatedSentence.without_reason`.
        """
        ...
