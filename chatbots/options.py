"""A chatbot's own options: read once, checked, with defaults."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar

from pydantic import Field, ValidationError

from scenarios.errors import UsageError
from scenarios.transcript import Frozen

Options = TypeVar("Options", bound=Frozen)


class GenerationOptions(Frozen):
    """How replies are sampled. The paper leaves both open."""

    temperature: float = Field(default=0.0, ge=0.0, le=2.0)
    """Of drafting a reply. We choose 0: what differs between chatbots is then not the dice."""
    max_tokens: int = Field(default=220, ge=1)
    """Limit of a reply: about twice the five short sentences that the prompts ask for."""


def read_options(kind: str, schema: type[Options], options: Mapping[str, Any]) -> Options:
    """`options` as an instance of `schema`.

    Raises:
        UsageError: an option is unknown, missing or has a wrong value.
    """
    try:
        return schema.model_validate(dict(options))
    except ValidationError as error:
        first = error.errors()[0]
        name = ".".join(str(part) for part in first["loc"])
        known = ", ".join(schema.model_fields)
        if first["type"] == "extra_forbidden":
            reason = f"there is no option `{name}`; there are: {known}."
        elif first["type"] == "missing":
            reason = f"the option `{name}` is required."
        elif name:
            reason = f"option `{name}`: {_sentence(first['msg'])}"
        else:
            reason = _sentence(first["msg"])
        raise UsageError(f"chatbot {kind}: {reason}") from error


def _sentence(message: str) -> str:
    message = message.removeprefix("Value error, ")
    return message[0].lower() + message[1:].rstrip(".") + "."
