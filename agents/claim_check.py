"""Which models check claims, and with which prompts.

The report uses this to mark chatbots that are judged by their own verifier.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Self

from pydantic import Field, field_validator

from hallulab.agents.models.prompt import Prompt
from hallulab.scenarios.errors import UsageError
from hallulab.scenarios.transcript import Frozen


class ClaimCheck(Frozen):
    """How a component checks claims against evidence with models.

    Chatbots that verify their claims, and detectors that ask a served model, have it as the attribute
    `claim_check`.
    """

    models: tuple[str, ...] = ()
    """Served names of the models that are asked whether a claim holds; empty: none."""
    prompts: dict[str, str] = Field(default_factory=dict)
    """The prompt files with which they are asked: name → version (`Prompt.version`)."""
    methods: tuple[str, ...] = ()
    """Detectors that judge for it, by class: a detector names itself, a guarded chatbot its guard."""

    @field_validator("methods")
    @classmethod
    def _renamed(cls, methods: tuple[str, ...]) -> tuple[str, ...]:
        """Run folders made before our packages were part of `hallulab` have their names without it."""
        return tuple(f"hallulab.{name}" if name.startswith("detectors.") else name for name in methods)

    @classmethod
    def by(cls, models: Iterable[str], prompts: Iterable[Prompt]) -> Self:
        """Make one from models' served names and prompt files."""
        return cls(
            models=tuple(dict.fromkeys(models)),
            prompts={prompt.name: prompt.version for prompt in prompts},
        )

    def joined(self, other: ClaimCheck) -> ClaimCheck:
        """Return what both ask, and by which detectors."""
        taken = {f"{name} of the chatbot": version for name, version in other.prompts.items()}
        return ClaimCheck(
            models=tuple(dict.fromkeys((*self.models, *other.models))),
            prompts={**self.prompts, **taken},
            methods=tuple(dict.fromkeys((*self.methods, *other.methods))),
        )


def read_claim_check(owner: str, component: object) -> ClaimCheck | None:
    """Return the `claim_check` of a chatbot or detector; None if it has none.

    Args:
            owner: the component's name in the error: `chatbot mine`.

    Raises:
        UsageError: its attribute `claim_check` has another type.
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
    """By name; None: the chatbot does not say."""
    detectors: dict[str, ClaimCheck] = Field(default_factory=dict)
    """By name."""
