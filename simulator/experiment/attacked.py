"""Chatbots whose searches are attacked, and whose turns say what was done to them."""

from __future__ import annotations

from collections.abc import Sequence

from hallulab.chatbots.protocol import Chatbot, Reply, has_memory
from hallulab.scenarios.attacks.retrieval import AttackedRetriever
from hallulab.scenarios.transcript import Message


class SearchNotingChatbot:
    """Says in the steps of each reply what was done to the searches for it.

    Args:
        chatbot: makes the replies.
        searches: what it searches with.
    """

    def __init__(self, chatbot: Chatbot, searches: AttackedRetriever) -> None:
        self._chatbot = chatbot
        self._searches = searches

    @property
    def remembers(self) -> bool:
        """Whether the chatbot remembers more than the history that it is given."""
        return has_memory(self._chatbot)

    async def reply(self, history: Sequence[Message]) -> Reply:
        """See `Chatbot.reply`."""
        self._searches.take_steps()  # those of a reply that failed are no part of this one
        made = await self._chatbot.reply(history)
        return made.model_copy(update={"steps": (*made.steps, *self._searches.take_steps())})
