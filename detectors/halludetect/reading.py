"""What the two readings of HalluDetect's steps have in common."""

from __future__ import annotations

from typing import Protocol

from pydantic import Field

from agents.errors import ModelError
from agents.model import Session
from agents.prompt import Prompt
from detectors.halludetect.grounds import Grounds
from detectors.spans import Region
from scenarios.transcript import Frozen, TurnView


class Rated(Frozen):
    """A possible hallucination after analysis and refinement."""

    text: str
    """The sentence, or the model's quotation where that is not in the reply."""
    region: Region | None
    """Where it stands in the reply."""
    severity: float
    """1 (harmless) to 5 (critical)."""
    reason: str = ""
    """Why, where that is known already."""
    details: dict[str, float | str | None] = Field(default_factory=dict)
    """What came out of each step."""

    def without_reason(self, error: ModelError, instead: str) -> Rated:
        """The same with another reason, where the step that words it failed; the details keep the error.

        The verdict does not hang on that step: what was rated stays rated.
        """
        return self.model_copy(update={"reason": instead, "details": {**self.details, "error": str(error)}})


class Reading(Protocol):
    """Analysis and filtering (B.1.3, B.1.4), read one way or the other."""

    @property
    def prompts(self) -> tuple[Prompt, ...]:
        """The prompt files it uses."""

    async def rate(self, session: Session, grounds: Grounds, view: TurnView) -> list[Rated]:
        """Everything that may be hallucinated, harmless things included, in order.

        Raises:
            ModelError: a step got no usable answer.
        """
        ...

    async def conclude(self, session: Session, grounds: Grounds, kept: list[Rated]) -> list[Rated]:
        """The same hallucinations in the same order, each with its reason (B.1.5); `kept` is not empty.

        A model that gives none is no failure: see `Rated.without_reason`.
        """
        ...
