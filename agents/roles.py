"""Role agents: a receptionist that routes a message to a specialist, and specialists that answer.

Both are AutoGen agents on one of our sessions, so their calls are booked like all others. AutoGen agents
keep state. Each is made for one message, so that a request depends on its arguments only.
Source: HalluDetect, appendix A.1.5 and D.5 (AgentBot: receptionist, then paralegal, lawyer or drafter).
"""

from __future__ import annotations

import string
from collections.abc import Sequence

from autogen_agentchat.agents import AssistantAgent, BaseChatAgent
from autogen_agentchat.base import Response
from autogen_agentchat.messages import BaseChatMessage, TextMessage
from autogen_core import CancellationToken
from autogen_core.model_context import UnboundedChatCompletionContext

from hallulab.agents.models.bridge import SessionClient, to_autogen
from hallulab.agents.models.model import Session
from hallulab.agents.models.prompt import ChatMessage, format_dialogue, load_prompt
from hallulab.scenarios.packs.pack import Specialist
from hallulab.scenarios.transcript import Message


class Receptionist(BaseChatAgent):
    """An AutoGen agent that answers a message with the name of the specialist who should take it.

    The model chooses by one token: the likeliest of the letters A, B, C …. So even a small model cannot miss
    the format. A tie goes to the specialist named first.

    Args:
        session: asks the model; the call is recorded in its ledger.
        step: second part of the call's purpose.
        domain: what the service is about.
        specialists: whom to choose from, 1 to 26 of them.
        history: the dialogue before the message.
    """

    def __init__(
        self,
        session: Session,
        step: str,
        domain: str,
        specialists: Sequence[Specialist],
        history: Sequence[Message],
    ) -> None:
        if not 1 <= len(specialists) <= len(string.ascii_uppercase):
            raise ValueError(f"a receptionist has 1 to 26 colleagues, not {len(specialists)}")
        super().__init__("receptionist", "Chooses the specialist whose duty fits a message.")
        self._session = session
        self._step = step
        self._domain = domain
        self._by_letter = dict(zip(string.ascii_uppercase, specialists, strict=False))
        self._history = tuple(history)

    @property
    def produced_message_types(self) -> Sequence[type[BaseChatMessage]]:
        """A text message that holds the specialist's name."""
        return (TextMessage,)

    async def on_messages(
        self, messages: Sequence[BaseChatMessage], cancellation_token: CancellationToken
    ) -> Response:
        """Choose a specialist for the last message."""
        request = load_prompt("hallulab.agents", "route").fill(
            domain=self._domain,
            colleagues="\n".join(
                f"{letter}. {one.title}: {one.duty}" for letter, one in self._by_letter.items()
            ),
            history=format_dialogue(self._history) or "(nothing yet)",
            query=messages[-1].to_text(),
        )
        share = await self._session.choose(self._step, request, list(self._by_letter))
        letter = max(self._by_letter, key=lambda one: share[one])
        return Response(chat_message=TextMessage(content=self._by_letter[letter].name, source=self.name))

    async def on_reset(self, cancellation_token: CancellationToken) -> None:
        """Do nothing: the agent keeps no state."""


async def route(
    session: Session,
    *,
    step: str,
    domain: str,
    specialists: Sequence[Specialist],
    history: Sequence[Message],
    query: str,
) -> str:
    """Return the name of the specialist who should answer `query`, which follows `history`.

    With only one specialist, no model is asked.

    Raises:
        UnparseableAnswer: no specialist's letter is among the model's likeliest tokens. There is no default
            specialist, because a guess would look like a decision.
        ModelError: the model gave no answer.
    """
    if len(specialists) == 1:
        return specialists[0].name
    receptionist = Receptionist(session, step, domain, specialists, history)
    response = await receptionist.on_messages(
        [TextMessage(content=query, source="user")], CancellationToken()
    )
    return response.chat_message.to_text()


async def answer_as(
    session: Session,
    *,
    step: str,
    system: str,
    messages: Sequence[ChatMessage],
    temperature: float = 0.0,
    max_tokens: int = 512,
    sample: int = 0,
) -> str:
    """Ask an AutoGen assistant with this system prompt; return its answer to the last message, stripped.

    Args:
        session: asks the model; the call is recorded in its ledger.
        step: second part of the call's purpose.
        system: the agent's system prompt; empty for none.
        messages: the dialogue, ending with a `user` message. Put evidence there or in `system`.
        temperature: sampling temperature; 0 is greedy.
        max_tokens: limit of the answer.
        sample: added to the session's seed.
    """
    if not messages or messages[-1].role != "user":
        raise ValueError("an agent answers a user: the last message must have the role 'user'")
    agent = AssistantAgent(
        name="assistant",
        model_client=SessionClient(
            session, step, temperature=temperature, max_tokens=max_tokens, sample=sample
        ),
        model_context=UnboundedChatCompletionContext(initial_messages=to_autogen(messages[:-1])),
        system_message=system or None,
    )
    response = await agent.on_messages(
        [TextMessage(content=messages[-1].text, source="user")], CancellationToken()
    )
    return response.chat_message.to_text().strip()
