"""AutoGen agents and teams that tests talk to; their models are scripted."""

from __future__ import annotations

from collections.abc import Sequence

from autogen_agentchat.agents import AssistantAgent, BaseChatAgent
from autogen_agentchat.base import Response
from autogen_agentchat.conditions import MaxMessageTermination
from autogen_agentchat.messages import BaseChatMessage, StopMessage, StructuredMessage
from autogen_agentchat.teams import RoundRobinGroupChat
from autogen_core import CancellationToken, FunctionCall
from autogen_core.models import CreateResult, ModelFamily, ModelInfo, RequestUsage
from autogen_ext.models.replay import ReplayChatCompletionClient
from pydantic import BaseModel

INFO = ModelInfo(
    vision=False,
    function_calling=True,
    json_output=False,
    family=ModelFamily.UNKNOWN,
    structured_output=False,
)
NUMBER = 7


def scripted(*answers: str | CreateResult) -> ReplayChatCompletionClient:
    """A model that gives these answers, one after the other."""
    given: Sequence[str | CreateResult] = answers
    return ReplayChatCompletionClient(given, model_info=INFO)


def team() -> RoundRobinGroupChat:
    """A clerk who drafts and an editor who has the last word; two turns of the conversation."""
    clerk = AssistantAgent("clerk", scripted("Perhaps at 6.", "Perhaps 5 euros."))
    editor = AssistantAgent("editor", scripted("It opens at 7.", "A ticket is 6 euros."))
    return RoundRobinGroupChat([clerk, editor], termination_condition=MaxMessageTermination(3))


async def reader() -> AssistantAgent:
    """An agent that looks up the hours before it answers."""

    def opening_hours(pool: str) -> str:
        """When a pool opens."""
        return f"The {pool} pool opens at 7."

    call = CreateResult(
        finish_reason="function_calls",
        content=[FunctionCall(id="1", name="opening_hours", arguments='{"pool": "indoor"}')],
        usage=RequestUsage(prompt_tokens=1, completion_tokens=1),
        cached=False,
    )
    model = scripted(call, "At 7.")
    return AssistantAgent("reader", model, tools=[opening_hours], reflect_on_tool_use=True)


class Hours(BaseModel):
    """An answer in parts."""

    reply: str
    passages: list[str]
    confidence: float


class Price(BaseModel):
    """An answer with one text."""

    says: str
    euros: int


class Saying(BaseChatAgent):
    """Says one message."""

    def __init__(self, message: BaseChatMessage) -> None:
        super().__init__("saying", "says it")
        self._message = message

    @property
    def produced_message_types(self) -> Sequence[type[BaseChatMessage]]:
        """The message's."""
        return (type(self._message),)

    async def on_messages(self, messages: Sequence[BaseChatMessage], token: CancellationToken) -> Response:
        """Say it."""
        return Response(chat_message=self._message)

    async def on_reset(self, token: CancellationToken) -> None:
        """Do nothing."""


def stopping() -> Saying:
    """An agent whose only message stops a team."""
    return Saying(StopMessage(content="It opens at 7. TERMINATE", source="saying"))


def structured() -> Saying:
    """An agent that says what it read."""
    said = Hours(reply="At 7.", passages=["It opens at 7."], confidence=0.5)
    return Saying(StructuredMessage[Hours](content=said, source="saying"))


def priced() -> Saying:
    """An agent whose answer has one text."""
    return Saying(StructuredMessage[Price](content=Price(says="6 euros.", euros=6), source="saying"))


def broken() -> AssistantAgent:
    """A factory that fails."""
    raise RuntimeError("no model")


def number() -> int:
    """A factory of something else."""
    return NUMBER


agent = AssistantAgent("agent", scripted("It opens at 7."))
