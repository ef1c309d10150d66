"""What a chatbot is."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from agents.models.model import ModelPool
from scenarios.errors import HallulabError
from scenarios.packs.pack import Scenario
from scenarios.transcript import Call, Frozen, Message, Passage, Retriever, Step


class Reply(Frozen):
    """What a chatbot answers, and how it came to it."""

    text: str
    """The reply as the user sees it."""
    query: str | None = None
    """The stand-alone query that was searched for, if any."""
    passages: tuple[Passage, ...] = ()
    """The evidence it was given."""
    steps: tuple[Step, ...] = ()
    """What it did on the way, in order."""
    calls: tuple[Call, ...] = ()
    """Model calls spent; empty when the bot under test does not tell."""


class ChatbotError(HallulabError):
    """A reply that could not be made. The conversation ends with it; its calls are kept."""

    def __init__(self, reason: str, calls: Sequence[Call] = ()) -> None:
        super().__init__(reason)
        self.calls = tuple(calls)


class Chatbot(Protocol):
    """Answers a user in a conversation. One instance serves one conversation.

    One that verifies its claims by models says so by an attribute `claim_check`, see
    `hallulab.ClaimCheck`; else the report cannot tell that such a model judges it.
    """

    async def reply(self, history: Sequence[Message]) -> Reply:
        """Answer the last message of `history`, which is the user's.

        Raises:
            ChatbotError: when no reply could be made.
        """
        ...


@dataclass(frozen=True)
class ChatbotContext:
    """What a chatbot's factory is given, once a conversation."""

    models: ModelPool
    """The served models by name; `models.get()` is the default one."""
    knowledge: Retriever
    """The scenario's knowledge base."""
    scenario: Scenario
    """Where domain, duties and role names come from."""
    model: str | None = None
    """Name in `models` of the model that plays this role; None: the default one."""
    seed: int = 0
    """Base seed of every sampled answer."""
    top_k: int = 4
    """Passages to retrieve (HalluDetect section 4.1)."""
    options: Mapping[str, Any] = field(default_factory=dict)
    """The chatbot's own options from the experiment file."""
