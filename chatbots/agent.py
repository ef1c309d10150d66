"""AgentBot: a receptionist routes to a specialist, who searches and answers (HalluDetect A.1.5, D.5).

Receptionist and specialists are AutoGen agents. The scenario names the specialists (in the paper paralegal,
lawyer and drafter). A specialist named `drafter` or `writer` writes documents from the user's facts; all
others inform and advise from the passages they found. With models that call functions, the receptionist calls
one to hand over, and the specialist calls one to search (`hallulab.agents.team`).
"""

from __future__ import annotations

from typing import Literal

from hallulab.agents.autogen import answer_as, route
from hallulab.agents.team import Team, is_callable_name, require_callable_names
from hallulab.chatbots.pipeline import (
    SHARED_PROMPTS,
    Draft,
    GenerationOptions,
    RagChatbot,
    collect_titles,
    format_chat,
    format_evidence,
    require_text,
)
from hallulab.chatbots.protocol import ChatbotContext
from hallulab.scenarios.transcript import Passage

WRITERS = frozenset({"drafter", "writer"})
"""Names of specialists who write documents."""


class AgentOptions(GenerationOptions):
    """Options of AgentBot."""

    routing: Literal["auto", "one-token", "handoff"] = "auto"
    """How the receptionist routes: by one letter, which small models can do, or by functions that the model
    calls (`handoff`). `auto`: by functions if the model handed over rightly when its endpoint was probed, and
    all specialists have names that functions can have; else by one letter."""


class AgentBot(RagChatbot):
    """A receptionist routes each message to a specialist, who searches and answers (3 calls a reply).

    The calls: reformulation, routing (one token; none with only one specialist), the specialist's answer.
    With handoffs: reformulation (not of a first message), the handoff, the specialist's searches, its answer.

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
        "agents/take_over_writing",
        "chatbots/specialist",
        "chatbots/drafter",
    )

    options: AgentOptions

    def __init__(self, context: ChatbotContext) -> None:
        super().__init__(context)
        if self.options.routing == "handoff":
            require_callable_names(context.scenario.specialists)

    @property
    def _hands_over(self) -> bool:
        """True if messages are handed over by function calls. It is known once the model is served."""
        if self.options.routing != "auto":
            return self.options.routing == "handoff"
        names = (one.name for one in self.context.scenario.specialists)
        client = self.context.models.get(self.context.model)
        return client.abilities.function_calls and all(map(is_callable_name, names))

    @property
    def parts_version(self) -> str:
        """The way of routing, which depends on the endpoint; empty: by one letter."""
        return "handoff" if self._hands_over else ""

    async def answer(self, work: Draft) -> str:
        """Route the message to the specialist, who searches and answers."""
        if self._hands_over:
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
            messages=format_chat(work.history),
            temperature=self.options.temperature,
            max_tokens=self.options.max_tokens,
        )
        work.note("draft", answer)
        return self.conclusion(require_text("answer", answer))

    async def _answer_by_team(self, work: Draft) -> str:
        scenario, found = self.context.scenario, dict[str, Passage]()
        # A first message stands on its own, and the specialist words its searches itself.
        if len(work.history) > 1:
            await self.reformulate(work)
        query = work.query or None

        async def search(query: str) -> str:
            work.query = work.query or query
            work.note("searched", query)
            passages = await self.context.knowledge.search(query, self.context.top_k)
            found.update((passage.id, passage) for passage in passages)
            work.passages = tuple(found.values())
            # A document keeps its number over all searches, so that it can be cited.
            numbers = {name: number for number, name in enumerate(found, start=1)}
            return format_evidence(passages, collect_titles(scenario), [numbers[one.id] for one in passages])

        team = Team(
            work.session,
            domain=scenario.domain,
            specialists=scenario.specialists,
            search=search,
            writers=WRITERS,
            instructions="\n\n".join(self.draft_instructions()),
            temperature=self.options.temperature,
            max_tokens=self.options.max_tokens,
        )
        told = await team.answer(work.history[:-1], work.question, query)
        work.note("route", told.specialist)
        work.note("draft", told.text)
        return self.conclusion(require_text("answer", told.text))
