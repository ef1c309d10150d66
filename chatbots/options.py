"""Options that the chatbots of ours share."""

from __future__ import annotations

from pydantic import Field

from scenarios.transcript import Frozen


class GenerationOptions(Frozen):
    """How replies are sampled. The paper leaves both open."""

    temperature: float = Field(default=0.0, ge=0.0, le=2.0)
    """Of drafting a reply. We choose 0: what differs between chatbots is then not the dice."""
    max_tokens: int = Field(default=220, ge=1)
    """Limit of a reply: about twice the five short sentences that the prompts ask for."""
