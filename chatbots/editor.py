"""EditorBot: a careful draft, compared with the evidence and revised (HalluDetect A.1.3, D.3)."""

from __future__ import annotations

from agents.prompt import dialogue
from chatbots.pipeline import Work
from chatbots.prompt_engineered import PromptEngineeredBot


class EditorBot(PromptEngineeredBot):
    """Three calls a reply: two for the prompt-engineered draft, one for the editor."""

    KIND = "editor"
    KIND = "editor"
    PROMPTS = (*PromptEngineeredBot.PROMPTS, "chatbots/editor")

    async def answer(self, work: Work) -> str:
        """Draft, then edit."""
        draft = await super().answer(work)
        messages = self.instruct(work, "editor", conversation=dialogue(work.history), draft=draft)
        return await self.write(work, "edit", "final", messages)
