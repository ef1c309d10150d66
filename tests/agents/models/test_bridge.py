"""What AutoGen agents send and get through a session."""

from __future__ import annotations

from typing import Any

import httpx2
import pytest
from autogen_core import FunctionCall
from autogen_core.models import (
    AssistantMessage,
    FunctionExecutionResult,
    FunctionExecutionResultMessage,
    LLMMessage,
    SystemMessage,
    UserMessage,
)
from autogen_core.tools import FunctionTool

from hallulab.agents.autogen import SessionClient, to_autogen
from hallulab.agents.models.prompt import ChatMessage
from hallulab.testing.scripted import completion, scripted_pool

CALL = FunctionCall(id="c1", name="search", arguments='{"query": "fee"}')
SENT_CALL = {"id": "c1", "type": "function", "function": {"name": "search", "arguments": '{"query": "fee"}'}}


async def search(query: str) -> str:
    """Searches."""
    return query


async def test_what_is_sent_is_what_a_session_sends() -> None:
    """The very request, so that recordings answer both."""
    pool, transport = scripted_pool(lambda _: "Yes.")
    dialogue = [
        ChatMessage("system", "Be brief."),
        ChatMessage("user", "Why? "),
        ChatMessage("assistant", "So. "),
        ChatMessage("user", "Oh."),
    ]
    session = pool.session("chatbot", seed=3)
    text = await session.text("reply", dialogue, temperature=0.5, max_tokens=9, sample=1)
    client = SessionClient(session, "reply", temperature=0.5, max_tokens=9, sample=1)
    found = await client.create(to_autogen(dialogue))
    assert (found.content, found.finish_reason, text) == ("Yes.", "stop", "Yes.")
    assert len(transport.requests) == 1
    assert transport.requests[0] == {
        "model": "scripted",
        "stream": False,
        "messages": [
            {"role": "system", "content": "Be brief."},
            {"role": "user", "name": "user", "content": "Why? "},
            {"role": "assistant", "content": "So. "},
            {"role": "user", "name": "user", "content": "Oh."},
        ],
        "temperature": 0.5,
        "max_tokens": 9,
        "seed": 4,
    }


async def test_calls_are_booked_on_the_session() -> None:
    pool, _ = scripted_pool(lambda _: "Yes.")
    session = pool.session("chatbot")
    client = SessionClient(session, "answer")
    await client.create([UserMessage(content="Why?", source="user")])
    assert [(call.purpose, call.prompt_tokens) for call in session.calls] == [("chatbot.answer", 10)]
    assert (client.actual_usage().prompt_tokens, client.total_usage().completion_tokens) == (10, 2)


async def test_tools_are_offered_called_and_answered() -> None:
    body = completion("unused")
    body["choices"][0] |= {
        "message": {"role": "assistant", "content": None, "tool_calls": [SENT_CALL]},
        "finish_reason": "tool_calls",
    }
    pool, transport = scripted_pool(lambda _: httpx2.Response(200, json=body))
    messages: list[LLMMessage] = [
        SystemMessage(content="Search."),
        UserMessage(content="What is the fee?", source="the user"),
        AssistantMessage(content=[CALL], source="a"),
        FunctionExecutionResultMessage(
            content=[FunctionExecutionResult(content="200 rupees", name="search", call_id="c1")]
        ),
    ]
    client = SessionClient(pool.session("chatbot"), "answer", calls_tools=True)
    found = await client.create(messages, tools=[FunctionTool(search, description="Searches documents.")])
    assert found.finish_reason == "function_calls"
    assert found.content == [CALL]
    (sent,) = transport.requests
    assert sent["messages"] == [
        {"role": "system", "content": "Search."},
        {"role": "user", "name": "the_user", "content": "What is the fee?"},
        {"role": "assistant", "content": None, "tool_calls": [SENT_CALL]},
        {"role": "tool", "tool_call_id": "c1", "content": "200 rupees"},
    ]
    (tool,) = sent["tools"]
    assert (tool["type"], tool["function"]["name"]) == ("function", "search")
    assert tool["function"]["description"] == "Searches documents."
    assert list(tool["function"]["parameters"]["properties"]) == ["query"]


async def test_a_picture_is_a_mistake() -> None:
    pool, _ = scripted_pool(lambda _: "Yes.")
    picture: Any = UserMessage.model_construct(content=["picture"], source="user")
    with pytest.raises(ValueError, match="a picture"):
        await SessionClient(pool.session("chatbot"), "answer").create([picture])
