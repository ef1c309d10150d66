"""AgentBot: a receptionist routes to a specialist, who searches and answers (HalluDetect A.1.5, D.5).

Receptionist and specialists are AutoGen agents. The team comes from the scenario (in the paper paralegal,
lawyer and drafter). A specialist named `drafter` or `writer` writes documents from the user's facts; all
others inform and advise on what their search found.
"""

from __future__ import annotations

from agents.roles import answer_as, route
from chatbots.pipeline import RagChatbot, Work, as_chat, not_empty

WRITERS = frozenset({"drafter", "writer"})
"""Names of specialists who write documents."""


class AgentBot(RagChatbot):
    """A receptionist routes each message to a specialist, who searches and answers (3 calls a reply).

    The calls: reformulation, routing (one token; none in a team of one), the specialist's answer.
    """

    KIND = "agent"
    PROMPTS = (
        "agents.retrieval/reformulation",
        "agents/route",
        "chatbots/frame",
        "chatbots/specialist",
        "chatbots/drafter",
    )

    async def answer(self, work: Work) -> str:
        """Reformulate, route, let the specialist search and answer."""
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
        system = self.instruct(work, prompt, title=specialist.title, duty=specialist.duty.rstrip("."))
        answer = await answer_as(
            work.session,
            step="answer",
            system=system[0].text,
            messages=as_chat(work.history),
            temperature=self.options.temperature,
            max_tokens=self.options.max_tokens,
        )
        work.note("draft", answer)
        return not_empty("answer", answer)
