"""What AutoGen agents send and get through a session, and the roles that they play."""

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

from hallulab.agents.autogen import Receptionist, SessionClient, answer_as, route, to_autogen
from hallulab.agents.models.answers import ModelError, UnparseableAnswer
from hallulab.agents.models.prompt import ChatMessage
from hallulab.scenarios.packs.pack import Specialist
from hallulab.scenarios.transcript import Message
from hallulab.testing.scripted import completion, last_user, scripted_pool

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


TEAM = (
    Specialist(name="paralegal", title="Paralegal", duty="finds rules"),
    Specialist(name="lawyer", title="Lawyer", duty="gives advice"),
    Specialist(name="drafter", title="Drafter", duty="writes letters"),
)
HISTORY = (Message(role="user", text="My fan broke."), Message(role="assistant", text="When?"))


async def test_the_likeliest_letter_is_the_specialist() -> None:
    pool, transport = scripted_pool(lambda _: {"The": 0.5, "C": 0.3, "B": 0.2})
    session = pool.session("chatbot")
    name = await route(
        session, step="route", domain="fans", specialists=TEAM, history=HISTORY, query="Write it for me."
    )
    assert name == "drafter"
    assert [call.purpose for call in session.calls] == ["chatbot.route"]
    asked = last_user(transport.requests[0])
    assert "A. Paralegal: finds rules\nB. Lawyer: gives advice\nC. Drafter: writes letters" in asked
    assert "User: My fan broke.\nAssistant: When?\n\nMessage: Write it for me." in asked


async def test_no_letter_is_an_error_and_not_a_default() -> None:
    pool, _ = scripted_pool(lambda _: {"Sorry": 1.0})
    with pytest.raises(UnparseableAnswer, match=r"route: the model printed .*, none of A, B, C"):
        await route(
            pool.session("chatbot"), step="route", domain="fans", specialists=TEAM, history=(), query="?"
        )


async def test_one_specialist_needs_no_question() -> None:
    pool, transport = scripted_pool(lambda _: "A")
    name = await route(
        pool.session("chatbot"), step="route", domain="fans", specialists=TEAM[:1], history=(), query="?"
    )
    assert name == "paralegal"
    assert transport.requests == []


def test_a_receptionist_without_colleagues_is_a_mistake() -> None:
    pool, _ = scripted_pool(lambda _: "A")
    with pytest.raises(ValueError, match="1 to 26"):
        Receptionist(pool.session("chatbot"), "route", "fans", (), ())


async def test_a_specialist_answers_on_the_whole_dialogue() -> None:
    pool, transport = scripted_pool(lambda _: "  Within two years. ")
    session = pool.session("chatbot", seed=7)
    messages = (
        ChatMessage("user", "My fan broke."),
        ChatMessage("assistant", "When?"),
        ChatMessage("user", "In May. {{system}}"),
    )
    text = await answer_as(
        session, step="answer", system="You are a lawyer.", messages=messages, temperature=0.3, sample=2
    )
    assert text == "Within two years."
    body = transport.requests[0]
    assert [(message["role"], message["content"]) for message in body["messages"]] == [
        ("system", "You are a lawyer."),
        ("user", "My fan broke."),
        ("assistant", "When?"),
        ("user", "In May. {{system}}"),
    ]
    assert (body["temperature"], body["max_tokens"], body["seed"]) == (0.3, 512, 9)
    assert [call.purpose for call in session.calls] == ["chatbot.answer"]


async def test_equal_questions_to_a_specialist_are_equal_requests() -> None:
    pool, transport = scripted_pool(lambda _: "Yes.")
    session = pool.session("chatbot")
    for _ in range(2):
        await answer_as(session, step="answer", system="", messages=[ChatMessage("user", "Really?")])
    assert len(transport.requests) == 1
    assert [call.replayed for call in session.calls] == [False, True]
    assert transport.requests[0]["messages"][0]["role"] == "user"


async def test_a_specialist_without_a_question_is_a_mistake() -> None:
    pool, _ = scripted_pool(lambda _: "Yes.")
    with pytest.raises(ValueError, match="last message must have the role 'user'"):
        await answer_as(
            pool.session("chatbot"), step="answer", system="", messages=[ChatMessage("assistant", "Hm")]
        )


async def test_a_model_that_fails_reaches_the_caller() -> None:
    pool, _ = scripted_pool(lambda _: httpx2.Response(400, json={"error": {"message": "too long"}}))
    session = pool.session("chatbot")
    with pytest.raises(ModelError, match="status 400: too long"):
        await answer_as(session, step="answer", system="", messages=[ChatMessage("user", "?")])
