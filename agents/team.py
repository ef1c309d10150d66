"""A team of AutoGen agents for models that call functions: a receptionist hands over to a specialist.

The specialist calls a search function and answers; its answer ends the work. Handing over and the first
search are required of the model. Small models do not call functions reliably; `hallulab.agents.autogen.route`
asks them for one token instead.
Source: HalluDetect, appendix A.1.5 and D.5 (AgentBot). The paper does not say how agents hand over; we use
AutoGen's `Swarm`.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Collection, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from autogen_agentchat.agents import AssistantAgent
from autogen_agentchat.base import Handoff, TaskResult
from autogen_agentchat.conditions import MaxMessageTermination, TextMessageTermination
from autogen_agentchat.messages import TextMessage
from autogen_agentchat.teams import Swarm
from autogen_core.models import CreateResult
from autogen_core.tools import FunctionTool

from hallulab.agents.autogen import SessionClient
from hallulab.agents.models.answers import UnparseableAnswer
from hallulab.agents.models.prompt import format_dialogue, load_prompt
from hallulab.agents.models.session import Session
from hallulab.scenarios.errors import UsageError
from hallulab.scenarios.packs.pack import Specialist
from hallulab.scenarios.transcript import Message

RECEPTIONIST = "receptionist"
MOST_SEARCHES = 3
"""Rounds of searches before a specialist must answer."""
MOST_MESSAGES = 12
"""A team is stopped after so many messages and events. Normal work takes four, plus two a search."""

Search = Callable[[str], Awaitable[str]]
"""Takes a query and returns documents as prompt text."""


@dataclass(frozen=True)
class TeamAnswer:
    """A team's answer to a message."""

    specialist: str
    """Name of the specialist who answered."""
    text: str


class Team:
    """Specialists and a receptionist, for one message.

    Args:
        session: asks the models; the calls are recorded in its ledger with the purposes `route` and `answer`.
        writers: names of specialists who write documents instead of informing.
        instructions: what specialists are told besides their rules; empty: nothing.
        temperature: sampling temperature; 0 is greedy.

    Raises:
        UsageError: a specialist's name is not a valid function name.
    """

    def __init__(
        self,
        session: Session,
        *,
        domain: str,
        specialists: Sequence[Specialist],
        search: Search,
        writers: Collection[str] = (),
        instructions: str = "",
        temperature: float = 0.0,
        max_tokens: int = 512,
    ) -> None:
        require_callable_names(specialists)
        self._session = session
        self._domain = domain
        self._specialists = specialists
        self._search = search
        self._writers = writers
        self._instructions = instructions
        self._sampling = {"temperature": temperature, "max_tokens": max_tokens}
        self._raised: list[BaseException] = []

    async def answer(self, history: Sequence[Message], message: str, query: str | None = None) -> TeamAnswer:
        """Return the team's answer to a message.

        Args:
            query: what it asks, on its own; None: it is understood without the history.

        Raises:
            UnparseableAnswer: the receptionist hands over to nobody, or nobody answers in time.
            ModelError: the model gave no answer.
        """
        names = [one.name for one in self._specialists]
        ends = TextMessageTermination(RECEPTIONIST) | MaxMessageTermination(MOST_MESSAGES)
        for name in names:
            ends = ends | TextMessageTermination(name)
        team = Swarm([self._receptionist(), *map(self._agent, self._specialists)], termination_condition=ends)
        task = f"Conversation so far:\n{format_dialogue(history) or '(nothing yet)'}\n\nMessage: {message}"
        if query is not None:
            task += f"\nOn its own: {query}"
        try:
            found = await team.run(task=TextMessage(content=task, source="user"))
        except Exception:
            # AutoGen passes failures between agents as texts.
            if self._raised:
                raise self._raised[0] from None
            raise
        return _answer_of(found, names)

    def _receptionist(self) -> AssistantAgent:
        prompt = load_prompt("hallulab.agents", "hand_over").fill(domain=self._domain)
        handoffs: list[Handoff | str] = [
            Handoff(target=one.name, description=f"{one.title}: {one.duty}") for one in self._specialists
        ]
        return AssistantAgent(
            RECEPTIONIST,
            self._client("route"),
            handoffs=handoffs,
            description="Hands messages over.",
            system_message=prompt[0].text,
        )

    def _agent(self, one: Specialist) -> AssistantAgent:
        own = "take_over_writing" if one.name in self._writers else "take_over"
        prompt = load_prompt("hallulab.agents", own).fill(
            domain=self._domain, title=one.title, duty=one.duty.rstrip(".")
        )
        return AssistantAgent(
            one.name,
            self._client("answer"),
            tools=[FunctionTool(self._find, name="search", description="Searches the service's documents.")],
            max_tool_iterations=MOST_SEARCHES,
            reflect_on_tool_use=True,
            description=one.duty,
            system_message="\n\n".join(filter(None, (prompt[0].text, self._instructions))),
        )

    def _client(self, step: str) -> SessionClient:
        return _Reporting(self._raised, self._session, step, calls_tools=True, insists=True, **self._sampling)

    async def _find(self, query: str) -> str:
        """Find documents."""
        with _kept(self._raised, "the search failed"):
            return await self._search(query)


def require_callable_names(specialists: Sequence[Specialist]) -> None:
    """Raise UsageError unless each specialist's name is a valid function name."""
    for one in specialists:
        if not is_callable_name(one.name):
            raise UsageError(
                f"specialist {one.name!r}: to be handed over to, it needs a name of letters, digits and `_` "
                f"that is not `{RECEPTIONIST}`. Rename it, or leave out `routing: handoff`."
            )


def is_callable_name(specialist: str) -> bool:
    """Return whether a specialist's name is a valid function name."""
    return specialist.isidentifier() and specialist.isascii() and specialist != RECEPTIONIST


class _Reporting(SessionClient):
    """A session's client that keeps what it raises.

    Without that, AutoGen would wait for ever after an exception that ends a run, which is no `Exception`.

    Args:
        raised: where exceptions are kept; one that is there already is raised again.
    """

    def __init__(self, raised: list[BaseException], *more: Any, **named: Any) -> None:
        super().__init__(*more, **named)
        self._raised = raised

    async def create(self, *arguments: Any, **named: Any) -> CreateResult:
        """See `SessionClient.create`."""
        with _kept(self._raised, "the model gave no answer"):
            if self._raised:
                raise self._raised[0]
            return await super().create(*arguments, **named)


@contextmanager
def _kept(raised: list[BaseException], said: str) -> Iterator[None]:
    """Keep what is raised, and raise RuntimeError(said) for AutoGen instead; let cancellations pass."""
    try:
        yield
    except asyncio.CancelledError:
        raise
    except BaseException as error:
        raised.append(error)
        raise RuntimeError(said) from error


def _answer_of(result: TaskResult, names: Sequence[str]) -> TeamAnswer:
    last = result.messages[-1]
    if isinstance(last, TextMessage) and last.source in names:
        return TeamAnswer(last.source, last.content.strip())
    if isinstance(last, TextMessage) and last.source == RECEPTIONIST:
        raise UnparseableAnswer(f"route: the receptionist hands over to none of {', '.join(names)}.")
    raise UnparseableAnswer(f"answer: the team came to no answer in {MOST_MESSAGES} messages.")
