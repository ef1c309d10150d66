"""Options that our chatbots share."""

from __future__ import annotations

from pydantic import Field

from hallulab.chatbots.strategies import Strategy
from hallulab.scenarios.transcript import Frozen


class GenerationOptions(Frozen):
    """How replies are sampled. The paper gives neither value."""

    temperature: float = Field(default=0.0, ge=0.0, le=2.0)
    """Temperature of a draft. We choose 0, so that chatbots do not differ by chance."""
    max_tokens: int = Field(default=220, ge=1)
    """Limit of a reply in tokens: about twice the five short sentences that the prompts ask for."""
    strategy: Strategy | None = None
    """What a draft is told to do about wrong documents (RAG-Trust section 3); None: nothing."""
    cite: bool = False
    """Whether a draft is asked to cite documents by number in square brackets (RAG-Trust section 5.3)."""
