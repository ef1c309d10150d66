"""Options of a guarded chatbot: whom it wraps, with which detector and policy."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pydantic import Field, ValidationError, field_validator, model_validator

from hallulab.scenarios.transcript import Frozen

KIND = "guarded"
"""The name under which guarded chatbots are registered."""


class Part(Frozen):
    """A registered kind with options."""

    kind: str
    """The name it is registered under."""
    options: dict[str, Any] = Field(default_factory=dict)
    """Options of that kind."""

    @model_validator(mode="before")
    @classmethod
    def _short_form(cls, value: Any) -> Any:
        return {"kind": value} if isinstance(value, str) else value


class DetectorPart(Part):
    """A detector that guards."""

    model: str | None = None
    """Name under `models` of the model that it judges by; None: the chatbot's own."""


class GuardedOptions(Frozen):
    """Options of a guarded chatbot."""

    chatbot: Part = Part(kind="vanilla")
    """The chatbot that is wrapped: a kind, or `{kind, options}`."""
    detector: DetectorPart = DetectorPart(kind="metarag")
    """The detector that judges each draft: a kind, or `{kind, options, model}`."""
    policy: str = "metarag"
    """Name of a built-in policy, or path of a YAML file, from the working directory."""

    @field_validator("chatbot")
    @classmethod
    def _wraps_no_guard(cls, part: Part) -> Part:
        if part.kind == KIND:
            raise ValueError("a guarded chatbot cannot wrap another one")
        return part


def find_wrapped_chatbot(options: Mapping[str, Any]) -> Part | None:
    """Return the chatbot that a guarded one with these options wraps; None if they are wrong."""
    try:
        return GuardedOptions.model_validate(dict(options)).chatbot
    except ValidationError:
        return None  # whoever makes the chatbot says what is wrong
