"""Vanilla: reformulate, retrieve, generate; nothing against hallucinations (HalluDetect A.1.1, D.1)."""

from __future__ import annotations

from hallulab.chatbots.pipeline import SHARED_PROMPTS, Draft, RagChatbot, collect_functions


class VanillaBot(RagChatbot):
    """Baseline RAG: reformulate, retrieve, generate (2 calls a reply)."""

    KIND = "vanilla"
    PROMPTS = (*SHARED_PROMPTS, "chatbots/generation")

    async def answer(self, work: Draft) -> str:
        """Reformulate, retrieve, generate."""
        scenario = self.context.scenario
        await self.reformulate(work)
        await self.retrieve(work)
        return await self.generate(
            work, "generation", domain=scenario.domain, functions=collect_functions(scenario)
        )
