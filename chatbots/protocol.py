"""The protocol of chatbots."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from agents.models.model import ModelPool
from scenarios.errors import HallulabError
from scenarios.packs.pack import Scenario
from scenarios.transcript import Call, Frozen, Message, Passage, Retriever, Step


class Reply(Frozen):
    """A chatbot's answer and how it was made."""

    text: str
    """The reply as the user sees it."""
    query: str | None = None
    """The stand-alone query of the search, if any."""
    passages: tuple[Passage, ...] = ()
    """The evidence for the reply."""
    steps: tuple[Step, ...] = ()
    """The steps to the reply, in order."""
    calls: tuple[Call, ...] = ()
    """Model calls; empty if the bot under test does not report them."""


class ChatbotError(HallulabError):
    """No reply could be made. The conversation ends; the calls are kept."""

    def __init__(self, reason: str, calls: Sequence[Call] = ()) -> None:
        super().__init__(reason)
        self.calls = tuple(calls)


class Chatbot(Protocol):
    """Answers a user in a conversation. One instance serves one conversation.

    A chatbot that verifies its claims with models has an attribute `claim_check` (`hallulab.ClaimCheck`).
    Without it, the report cannot show that one of these models also judges the chatbot.
    """

    async def reply(self, history: Sequence[Message]) -> Reply:
        """Answer the last message of `history`, which is the user's.

        Raises:
            ChatbotError: no reply could be made.
        """
        ...


@dataclass(frozen=True)
class ChatbotContext:
    """The argument of a chatbot's factory, which is called once a conversation."""

    models: ModelPool
    """The served models by name; `models.get()` is the default one."""
    knowledge: Retriever
    """The scenario's knowledge base."""
    scenario: Scenario
    """The scenario, with domain, duties and role names."""
    model: str | None = None
    """Name in `models` of the chatbot's model; None: the default one."""
    seed: int = 0
    """Base seed of every sampled answer."""
    top_k: int = 4
    """Passages to retrieve (HalluDetect section 4.1)."""
    options: Mapping[str, Any] = field(default_factory=dict)
    """The chatbot's own options from the experiment file."""
