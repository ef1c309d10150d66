"""AutoGen agents that ask models through our sessions, and role agents that answer a message.

A receptionist routes a message to a specialist, who answers. Both are AutoGen agents on one of our sessions,
so their calls are booked like all others. Each is made for one message: AutoGen agents keep state, and a
request must depend on its arguments only.
Source: HalluDetect, appendix A.1.5 and D.5 (AgentBot: receptionist, then paralegal, lawyer or drafter).
"""

from __future__ import annotations

import re
import string
from collections.abc import AsyncGenerator, Mapping, Sequence
from typing import Any, Literal, cast

from autogen_agentchat.agents import AssistantAgent, BaseChatAgent
from autogen_agentchat.base import Response
from autogen_agentchat.messages import BaseChatMessage, TextMessage
from autogen_core import CancellationToken, FunctionCall
from autogen_core.model_context import UnboundedChatCompletionContext
from autogen_core.models import (
    AssistantMessage,
    ChatCompletionClient,
    CreateResult,
    FinishReasons,
    FunctionExecutionResultMessage,
    LLMMessage,
    ModelCapabilities,
    ModelInfo,
    RequestUsage,
    SystemMessage,
    UserMessage,
)
from autogen_core.tools import Tool, ToolSchema
from pydantic import BaseModel

from hallulab.agents.models.answers import Completion, describe_schema
from hallulab.agents.models.prompt import ChatMessage, format_dialogue, load_prompt
from hallulab.agents.models.session import Session
from hallulab.agents.models.transport import WireMessage
from hallulab.scenarios.packs.pack import Specialist
from hallulab.scenarios.transcript import Message

_NAME_LENGTH = 64


class SessionClient(ChatCompletionClient):
    """A model client for AutoGen agents that sends every call through a session, which records it.

    Args:
        step: second part of every call's purpose.
        temperature: sampling temperature; 0 is greedy.
        sample: added to the session's seed.
        calls_tools: whether the model can call tools.
        insists: whether it must call one where tools are offered and none was called yet. A model that is
            left to choose may write the call as text, which no server recognizes.
    """

    def __init__(
        self,
        session: Session,
        step: str,
        *,
        temperature: float = 0.0,
        max_tokens: int = 512,
        sample: int = 0,
        calls_tools: bool = False,
        insists: bool = False,
    ) -> None:
        self._insists = insists
        self._session = session
        self._step = step
        self._sampling = {"temperature": temperature, "max_tokens": max_tokens, "seed": session.seed + sample}
        self._info = ModelInfo(
            vision=False,
            function_calling=calls_tools,
            json_output=True,
            family="unknown",
            structured_output=True,
            multiple_system_messages=False,
        )

    async def create(
        self,
        messages: Sequence[LLMMessage],
        *,
        tools: Sequence[Tool | ToolSchema] = (),
        tool_choice: Tool | Literal["auto", "required", "none"] = "auto",
        json_output: bool | type[BaseModel] | None = None,
        extra_create_args: Mapping[str, Any] | None = None,
        cancellation_token: CancellationToken | None = None,
    ) -> CreateResult:
        """Ask for one completion.

        Raises:
            ModelError: the model gave no answer.
        """
        extra = {**self._sampling, **(extra_create_args or {})}
        if isinstance(json_output, type):
            extra["response_format"] = describe_schema(json_output)
        if tools and tool_choice != "none":
            extra["tools"] = [_tool(tool) for tool in tools]
            if self._insists and not any(isinstance(one, FunctionExecutionResultMessage) for one in messages):
                extra["tool_choice"] = "required"
        sent = [one for message in messages for one in _wire_messages(message)]
        return _result(await self._session.complete(self._step, sent, extra))

    def create_stream(
        self, messages: Sequence[LLMMessage], **kwargs: Any
    ) -> AsyncGenerator[str | CreateResult, None]:
        """Return the completion as a stream of one item."""

        async def once() -> AsyncGenerator[str | CreateResult, None]:
            yield await self.create(messages, **kwargs)

        return once()

    async def close(self) -> None:
        """Do nothing: the pool closes the connections."""

    def actual_usage(self) -> RequestUsage:
        """Return the tokens of the session so far."""
        return RequestUsage(
            prompt_tokens=sum(call.prompt_tokens or 0 for call in self._session.calls),
            completion_tokens=sum(call.completion_tokens or 0 for call in self._session.calls),
        )

    def total_usage(self) -> RequestUsage:
        """Return the same as `actual_usage`."""
        return self.actual_usage()

    def count_tokens(self, messages: Sequence[LLMMessage], **kwargs: Any) -> int:
        """Return a rough count, four characters a token; the ledger gets the server's count."""
        return sum(len(str(message.content)) for message in messages) // 4

    def remaining_tokens(self, messages: Sequence[LLMMessage], **kwargs: Any) -> int:
        """Return a large number: AutoGen uses it only to trim contexts, which we do ourselves."""
        return 1_000_000

    @property
    def capabilities(self) -> ModelCapabilities:
        """The same as `model_info`, under AutoGen's older name."""
        return cast(ModelCapabilities, self.model_info)

    @property
    def model_info(self) -> ModelInfo:
        """Text and JSON, no pictures; tools if they were asked for."""
        return self._info


def to_autogen(messages: Sequence[ChatMessage]) -> list[LLMMessage]:
    """Convert our messages to AutoGen's."""
    made: list[LLMMessage] = []
    for message in messages:
        if message.role == "system":
            made.append(SystemMessage(content=message.text))
        elif message.role == "user":
            made.append(UserMessage(content=message.text, source="user"))
        else:
            made.append(AssistantMessage(content=message.text, source="assistant"))
    return made


def _wire_messages(message: LLMMessage) -> list[WireMessage]:
    """Convert an AutoGen message for the wire: results of several tools become several messages.

    Raises:
        ValueError: it holds a picture.
    """
    if isinstance(message, SystemMessage):
        return [{"role": "system", "content": message.content}]
    if isinstance(message, FunctionExecutionResultMessage):
        return [
            {"role": "tool", "tool_call_id": result.call_id, "content": result.content}
            for result in message.content
        ]
    if isinstance(message, AssistantMessage):
        if isinstance(message.content, str):
            return [{"role": "assistant", "content": message.content}]
        calls = [
            {"id": one.id, "type": "function", "function": {"name": one.name, "arguments": one.arguments}}
            for one in message.content
        ]
        return [{"role": "assistant", "content": None, "tool_calls": calls}]
    if not isinstance(message.content, str):
        raise ValueError("a message with a picture, which no model of ours is sent")
    name = re.sub(r"[^\w-]", "_", message.source, flags=re.ASCII)[:_NAME_LENGTH]
    return [{"role": "user", "name": name, "content": message.content}]


def _tool(tool: Tool | ToolSchema) -> dict[str, Any]:
    schema = tool.schema if isinstance(tool, Tool) else tool
    function = {
        "name": schema["name"],
        "description": schema.get("description", ""),
        "parameters": schema.get("parameters", {"type": "object", "properties": {}}),
    }
    return {"type": "function", "function": function}


def _result(completion: Completion) -> CreateResult:
    calls = [
        FunctionCall(id=call.id, name=call.name, arguments=call.arguments) for call in completion.tool_calls
    ]
    return CreateResult(
        finish_reason="function_calls" if calls else cast(FinishReasons, completion.finish_reason),
        content=calls or completion.text,
        usage=RequestUsage(
            prompt_tokens=completion.prompt_tokens or 0, completion_tokens=completion.completion_tokens or 0
        ),
        cached=False,
    )


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
