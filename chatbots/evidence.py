"""The evidence of chatbots that do not say what they read: searched when somebody first needs it.

Searching takes an embedding model, which takes far more time than a reply of another endpoint. So a reply
says only that its passages are still to be searched. They are when it is judged, or when a run is annotated,
viewed or exported (`hallulab.simulator.report.late_evidence`).
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeVar

from hallulab.chatbots.protocol import Reply
from hallulab.scenarios.transcript import Conversation, Message, Step, Turn
from hallulab.scenarios.turn_views import Retriever

STEP = "evidence"
"""Name of the step that says where the passages come from."""
LATER = "The bot names no passages; the knowledge base is searched for them when they are needed."
SEARCHED = "The bot names no passages; these were retrieved from the scenario's knowledge base."

Made = TypeVar("Made", Reply, Turn)


def leave_evidence(history: Sequence[Message]) -> tuple[str, tuple[Step, ...]]:
    """Return the query and the step of a reply whose passages are still to be searched.

    The query is the user's last two messages, because a follow-up alone often lacks its subject. A model call
    to reformulate it would count as the bot's, which made none.
    """
    query = "\n".join([message.text for message in history if message.role == "user"][-2:])
    return query, (Step(name=STEP, text=LATER),)


def lacks_evidence(made: Reply | Turn) -> bool:
    """Return whether the passages of a reply are still to be searched: there is a query for them."""
    return made.query is not None and any(step.name == STEP and step.text == LATER for step in made.steps)


@dataclass(frozen=True)
class EvidenceSource:
    """Where the evidence of replies without passages is searched."""

    retriever: Retriever
    top_k: int

    async def complete(self, made: Made) -> Made:
        """Return a reply with its passages, searched if they still are to be.

        Raises:
            UsageError: the embedding model does not exist.
            OperationalError: its weights cannot be fetched, or the disk is full.
        """
        if made.query is None or not lacks_evidence(made):
            return made
        passages = await self.retriever.search(made.query, self.top_k)
        steps = tuple(
            Step(name=STEP, text=SEARCHED) if step.name == STEP and step.text == LATER else step
            for step in made.steps
        )
        return made.model_copy(update={"passages": passages, "steps": steps})

    async def complete_all(self, conversation: Conversation) -> Conversation:
        """Return a conversation with the passages of all replies; raises like `complete`."""
        if not any(map(lacks_evidence, conversation.turns)):
            return conversation
        turns = await asyncio.gather(*map(self.complete, conversation.turns))
        return conversation.model_copy(update={"turns": tuple(turns)})
