"""EditorBot: a careful draft, compared with the evidence and revised (HalluDetect A.1.3, D.3)."""

from __future__ import annotations

from typing import Any

from pydantic import Field, field_validator

from hallulab.agents.models.answers import UnparseableAnswer
from hallulab.agents.models.prompt import format_dialogue
from hallulab.chatbots.pipeline import Draft, is_refusal, tidy_reply
from hallulab.chatbots.prompt_engineered import PromptEngineeredBot
from hallulab.scenarios.transcript import Frozen

MOST_PROBLEMS = 6
"""Problems of a draft that are read."""


class EditedReply(Frozen):
    # The model reads this text in the schema: another wording is another request, and other edits.
    """What the editor found and made of it. A small model edits what it has named first; asked for the
    edited text alone, it copies the draft."""  # noqa: D205, D209

    problems: tuple[str, ...] = Field(max_length=MOST_PROBLEMS)
    """Sentences of the draft that the evidence does not support."""
    reply: str
    """The reply without them."""

    @field_validator("problems", mode="before")
    @classmethod
    def _cut(cls, given: Any) -> Any:
        """Keep the first ones: not every endpoint holds a model to the limit."""
        return given[:MOST_PROBLEMS] if isinstance(given, list | tuple) else given


class EditorBot(PromptEngineeredBot):
    """Prompt-engineered draft, then an editor removes what the evidence lacks (3 calls a reply)."""

    KIND = "editor"
    PROMPTS = (*PromptEngineeredBot.PROMPTS, "chatbots/editor")

    async def answer(self, work: Draft) -> str:
        """Draft, then edit."""
        draft = await super().answer(work)
        if is_refusal(draft):
            work.note("final", "The draft stands: it declines to answer.")
            return draft
        messages = self.instruct(work, "editor", conversation=format_dialogue(work.history), draft=draft)
        try:
            edited = await work.session.structured(
                "edit", messages, EditedReply, max_tokens=2 * self.options.max_tokens
            )
        except UnparseableAnswer as error:
            work.note("final", f"The edit cannot be read, the draft stands. {error}")
            return draft
        work.note("problems", "\n".join(edited.problems) or "none")
        final = tidy_reply(edited.reply)
        if not final:
            work.note("final", "The edit leaves nothing, the draft stands.")
            return draft
        work.note("final", edited.reply)
        return final
