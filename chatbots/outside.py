"""What the two adapters for somebody else's bot share: evidence for the judges when the bot names none."""

from __future__ import annotations

from collections.abc import Sequence

from chatbots.protocol import ChatbotContext
from scenarios.transcript import Message, Passage, Step


async def evidence_for(
    context: ChatbotContext, history: Sequence[Message]
) -> tuple[str, tuple[Passage, ...], Step]:
    """Search the scenario's knowledge base on behalf of a bot that does not say what it read.

    The query is the user's last two messages: a follow-up alone often lacks its subject, and a model call
    to reformulate it would be booked on a bot that made none.

    Returns:
        The query, the passages, and a step that says where they come from.
    """
    said = [message.text for message in history if message.role == "user"]
    query = "\n".join(said[-2:])
    passages = await context.knowledge.search(query, context.top_k)
    note = "The bot names no passages; these were retrieved from the scenario's knowledge base."
    return query, passages, Step(name="evidence", text=note)
