from __future__ import annotations

import httpx2
import pytest

from hallulab.agents.autogen import Receptionist, answer_as, route
from hallulab.agents.models.answers import ModelError, UnparseableAnswer
from hallulab.agents.models.prompt import ChatMessage
from hallulab.scenarios.packs.pack import Specialist
from hallulab.scenarios.transcript import Message
from hallulab.testing.scripted import last_user, scripted_pool

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
