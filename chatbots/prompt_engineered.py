"""Prompt-engineered: Vanilla with a prompt that keeps the reply to the evidence (HalluDetect A.1.2, D.2)."""

from __future__ import annotations

from typing import ClassVar

from hallulab.chatbots.pipeline import SHARED_PROMPTS, Draft, RagChatbot, collect_functions


class PromptEngineeredBot(RagChatbot):
    """Vanilla with a prompt that keeps the reply to the evidence (2 calls a reply).

    EditorBot and FactChecker build on its draft.
    """

    KIND = "prompt-engineered"
    PROMPTS: ClassVar[tuple[str, ...]] = (*SHARED_PROMPTS, "chatbots/careful_generation")

    async def answer(self, work: Draft) -> str:
        """Reformulate, retrieve, generate with the careful prompt."""
        await self.reformulate(work)
        await self.retrieve(work)
        return await self.generate(
            work, "careful_generation", functions=collect_functions(self.context.scenario)
        )
