"""Chatbots whose searches are attacked, and whose turns say what was done to them."""

from __future__ import annotations

from collections.abc import Sequence

from hallulab.chatbots.evidence import EvidenceSource
from hallulab.chatbots.pipeline import failures_as_chatbot_errors
from hallulab.chatbots.protocol import Chatbot, Reply, has_memory
from hallulab.scenarios.attacks.retrieval import AttackedRetriever
from hallulab.scenarios.transcript import Message


class SearchNotingChatbot:
    """Says in the steps of each reply what was done to the searches for it.

    Args:
        chatbot: makes the replies.
        searches: what it searches with, and what searches at once for a chatbot that does not say what it
            read: what was done to that search belongs to the reply.
        top_k: passages of a reply.
    """

    def __init__(self, chatbot: Chatbot, searches: AttackedRetriever, top_k: int) -> None:
        self._chatbot = chatbot
        self._searches = searches
        self._source = EvidenceSource(searches, top_k)

    @property
    def remembers(self) -> bool:
        """Whether the chatbot remembers more than the history that it is given."""
        return has_memory(self._chatbot)

    async def reply(self, history: Sequence[Message]) -> Reply:
        """See `Chatbot.reply`."""
        self._searches.take_steps()  # those of a reply that failed are no part of this one
        made = await self._chatbot.reply(history)
        with failures_as_chatbot_errors(made.calls):
            made = await self._source.complete(made)
        return made.model_copy(update={"steps": (*made.steps, *self._searches.take_steps())})
