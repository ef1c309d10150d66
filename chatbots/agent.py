"""AgentBot: a receptionist routes to a specialist, who searches and answers (HalluDetect A.1.5, D.5).

Receptionist and specialists are AutoGen agents. The scenario names the specialists (in the paper paralegal,
lawyer and drafter). A specialist named `drafter` or `writer` writes documents from the user's facts; all
others inform and advise from the passages they found. `routing: handoff` is for models that call functions:
the receptionist calls a function to hand over, and the specialist calls one to search (`agents.team`).
"""

from __future__ import annotations

from typing import Literal

from agents.roles import answer_as, route
from agents.team import Team, require_callable_names
from chatbots.options import GenerationOptions
from chatbots.pipeline import SHARED_PROMPTS, RagChatbot, Work, as_chat, format_evidence, not_empty, titles_of
from chatbots.protocol import ChatbotContext
from scenarios.errors import UsageError
from scenarios.transcript import Passage

WRITERS = frozenset({"drafter", "writer"})
"""Names of specialists who write documents."""


class AgentOptions(GenerationOptions):
    """Options of AgentBot."""

    routing: Literal["one-token", "handoff"] = "one-token"
    """How the receptionist routes: by one letter, which small models can do, or by functions that the model
    calls."""


class AgentBot(RagChatbot):
    """A receptionist routes each message to a specialist, who searches and answers (3 calls a reply).

    The calls: reformulation, routing (one token; none with only one specialist), the specialist's answer.
    With handoffs: the handoff, the specialist's searches, its answer.

    Raises:
        UsageError: an option is unknown or wrong, or a specialist's name is not a valid function name.
    """

    KIND = "agent"
    OPTIONS = AgentOptions
    PROMPTS = (
        *SHARED_PROMPTS,
        "agents/route",
        "agents/hand_over",
        "agents/take_over",
        "chatbots/specialist",
        "chatbots/drafter",
    )

    options: AgentOptions

    def __init__(self, context: ChatbotContext) -> None:
        super().__init__(context)
        if self.options.routing == "handoff":
            require_callable_names(context.scenario.specialists)
            if self.options.strategy or self.options.cite:
                raise UsageError(
                    f"chatbot {self.KIND}: `strategy` and `cite` need the prompts of `routing: one-token`. "
                    "Leave them out, or `routing: handoff`."
                )

    async def answer(self, work: Work) -> str:
        """Route the message to the specialist, who searches and answers."""
        if self.options.routing == "handoff":
            return await self._answer_by_team(work)
        scenario = self.context.scenario
        await self.reformulate(work)
        name = await route(
            work.session,
            step="route",
            domain=scenario.domain,
            specialists=scenario.specialists,
            history=work.history[:-1],
            query=work.question,
        )
        work.note("route", name)
        specialist = next(one for one in scenario.specialists if one.name == name)
        await self.retrieve(work)
        prompt = "drafter" if name in WRITERS else "specialist"
        system = self.instruct_draft(work, prompt, title=specialist.title, duty=specialist.duty.rstrip("."))
        answer = await answer_as(
            work.session,
            step="answer",
            system=system[0].text,
            messages=as_chat(work.history),
            temperature=self.options.temperature,
            max_tokens=self.options.max_tokens,
        )
        work.note("draft", answer)
        return self.conclusion(not_empty("answer", answer))

    async def _answer_by_team(self, work: Work) -> str:
        scenario, found = self.context.scenario, dict[str, Passage]()

        async def search(query: str) -> str:
            work.query = work.query or query
            work.note("searched", query)
            passages = await self.context.knowledge.search(query, self.context.top_k)
            found.update((passage.id, passage) for passage in passages)
            work.passages = tuple(found.values())
            return format_evidence(passages, titles_of(scenario))

        team = Team(
            work.session,
            domain=scenario.domain,
            specialists=scenario.specialists,
            search=search,
            temperature=self.options.temperature,
            max_tokens=self.options.max_tokens,
        )
        told = await team.answer(work.history[:-1], work.question)
        work.note("route", told.specialist)
        work.note("draft", told.text)
        return not_empty("answer", told.text)
