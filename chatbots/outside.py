"""Shared by the adapters of other people's bots: the reply's text, and evidence for the detectors."""

from __future__ import annotations

from collections.abc import Sequence

from hallulab.agents.models.redaction import remove_keys
from hallulab.chatbots.protocol import ChatbotContext, ChatbotError
from hallulab.scenarios.transcript import Message, Passage, Step


def validate_reply(bot: str, reply: str) -> str:
    """Return the bot's reply, stripped and otherwise unchanged, because that is what is judged.

    Keys and half characters are removed: see `hallulab.agents.models.redaction.remove_keys`.

    Args:
        bot: the bot's name, for errors.

    Raises:
        ChatbotError: the reply is empty.
    """
    text = remove_keys(reply.strip())
    if not text:
        raise ChatbotError(f"{bot}: the bot's reply is empty.")
    return text


async def retrieve_evidence(
    context: ChatbotContext, history: Sequence[Message]
) -> tuple[str, tuple[Passage, ...], Step]:
    """Search the scenario's knowledge base for a bot that does not say what it read.

    The query is the user's last two messages, because a follow-up alone often lacks its subject. A model call
    to reformulate it would count as the bot's, which made none.

    Returns:
        The query, the passages, and a step that says where they come from.
    """
    said = [message.text for message in history if message.role == "user"]
    query = "\n".join(said[-2:])
    passages = await context.knowledge.search(query, context.top_k)
    note = "The bot names no passages; these were retrieved from the scenario's knowledge base."
    return query, passages, Step(name="evidence", text=note)
