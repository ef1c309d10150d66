"""Who checks claims, and by which question: it tells whether a chatbot is judged by its own verifier."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Self

from pydantic import Field

from agents.models.prompt import Prompt
from scenarios.errors import UsageError
from scenarios.transcript import Frozen


class ClaimCheck(Frozen):
    """How something holds claims against evidence by models.

    A chatbot that verifies what it says, and a detector that judges by a served model, have one as their
    attribute `claim_check`.
    """

    models: tuple[str, ...] = ()
    """Served names of the models that are asked whether a claim holds; empty: none is."""
    prompts: dict[str, str] = Field(default_factory=dict)
    """The prompt files that they are asked by: name to version (`Prompt.version`)."""

    @classmethod
    def by(cls, models: Iterable[str], prompts: Iterable[Prompt]) -> Self:
        """Checking by those models and those prompt files."""
        return cls(
            models=tuple(dict.fromkeys(models)),
            prompts={prompt.name: prompt.version for prompt in prompts},
        )


def told_claim_check(owner: str, component: object) -> ClaimCheck | None:
    """What a chatbot or detector tells of its checking; None where it tells nothing.

    Args:
        owner: what it is, as the error names it: `chatbot mine`.

    Raises:
        UsageError: its attribute `claim_check` is something else.
    """
    told = getattr(component, "claim_check", None)
    if told is None or isinstance(told, ClaimCheck):
        return told
    raise UsageError(
        f"{owner}: its `claim_check` is {told!r}, no hallulab.ClaimCheck. Correct it or leave it out."
    )


class ClaimChecks(Frozen):
    """How the chatbots and detectors of a run check claims: `claim_checks` in `experiment.json`."""

    chatbots: dict[str, ClaimCheck | None] = Field(default_factory=dict)
    """By name; None: the chatbot does not tell."""
    detectors: dict[str, ClaimCheck] = Field(default_factory=dict)
    """By name."""
