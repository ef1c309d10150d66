"""Between our messages and AutoGen's: conversions, and a session in the shape AutoGen agents want."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping, Sequence
from typing import Any, Literal, cast

from autogen_core import CancellationToken
from autogen_core.models import (
    AssistantMessage,
    ChatCompletionClient,
    CreateResult,
    LLMMessage,
    ModelCapabilities,
    ModelInfo,
    RequestUsage,
    SystemMessage,
    UserMessage,
)
from autogen_core.tools import Tool, ToolSchema
from pydantic import BaseModel

from agents.models.prompt import ChatMessage
from scenarios.transcript import Call

MODEL_INFO = ModelInfo(
    vision=False,
    function_calling=False,
    json_output=True,
    family="unknown",
    structured_output=True,
    multiple_system_messages=False,
)
"""What AutoGen may assume of a served model: text in, text or JSON out."""


class SessionClient(ChatCompletionClient):
    """A model client for AutoGen agents whose every call goes through, and is booked on, a session.

    Args:
        create: sends messages with extra request arguments.
        sampling: request arguments of every call (temperature, max_tokens, seed).
        calls: the session's ledger.
    """

    def __init__(
        self,
        create: Callable[[Sequence[LLMMessage], Mapping[str, Any]], Awaitable[CreateResult]],
        sampling: Mapping[str, Any],
        calls: Sequence[Call],
    ) -> None:
        self._create = create
        self._sampling = sampling
        self._calls = calls

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
        """One completion. Tools are not offered: `MODEL_INFO` says that the model has none."""
        extra = {**self._sampling, **(extra_create_args or {})}
        if isinstance(json_output, type):
            extra["response_format"] = json_schema(json_output)
        return await self._create(messages, extra)

    def create_stream(
        self, messages: Sequence[LLMMessage], **kwargs: Any
    ) -> AsyncGenerator[str | CreateResult, None]:
        """The same, as a stream of one item."""

        async def once() -> AsyncGenerator[str | CreateResult, None]:
            yield await self.create(messages)

        return once()

    async def close(self) -> None:
        """The pool closes connections."""

    def actual_usage(self) -> RequestUsage:
        """Tokens of the session so far."""
        return RequestUsage(
            prompt_tokens=sum(call.prompt_tokens or 0 for call in self._calls),
            completion_tokens=sum(call.completion_tokens or 0 for call in self._calls),
        )

    def total_usage(self) -> RequestUsage:
        """The same as `actual_usage`."""
        return self.actual_usage()

    def count_tokens(self, messages: Sequence[LLMMessage], **kwargs: Any) -> int:
        """A rough count, four characters a token; the server counts for the ledger."""
        return sum(len(str(message.content)) for message in messages) // 4

    def remaining_tokens(self, messages: Sequence[LLMMessage], **kwargs: Any) -> int:
        """AutoGen asks for it only to trim contexts, which we do ourselves."""
        return 1_000_000

    @property
    def capabilities(self) -> ModelCapabilities:
        """AutoGen's older name of `model_info`."""
        return cast(ModelCapabilities, self.model_info)

    @property
    def model_info(self) -> ModelInfo:
        """Text and JSON, no tools, no pictures."""
        return MODEL_INFO


def to_autogen(messages: Sequence[ChatMessage]) -> list[LLMMessage]:
    """Our messages as AutoGen's."""
    made: list[LLMMessage] = []
    for message in messages:
        if message.role == "system":
            made.append(SystemMessage(content=message.text))
        elif message.role == "user":
            made.append(UserMessage(content=message.text, source="user"))
        else:
            made.append(AssistantMessage(content=message.text, source="assistant"))
    return made


def json_schema(schema: type[BaseModel]) -> dict[str, Any]:
    """The `response_format` that makes a server follow a pydantic model."""
    return {
        "type": "json_schema",
        "json_schema": {"name": schema.__name__, "schema": schema.model_json_schema(), "strict": True},
    }
