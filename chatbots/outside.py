"""What the two adapters for somebody else's bot share: its reply as it is, and evidence for the judges."""

from __future__ import annotations

from collections.abc import Sequence

from agents.models.redaction import without_keys
from chatbots.protocol import ChatbotContext, ChatbotError
from scenarios.transcript import Message, Passage, Step


def as_said(bot: str, reply: str) -> str:
    """The reply without white space around it, and otherwise as the bot gave it: that is what is judged.

    Keys and half characters are no part of it: see `agents.models.redaction.without_keys`.

    Args:
        bot: which bot it is, as the error names it.

    Raises:
        ChatbotError: nothing is left of it.
    """
    text = without_keys(reply.strip())
    if not text:
        raise ChatbotError(f"{bot}: the bot's reply is empty.")
    return text


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
