"""The query that chatbots and detectors search for."""

from __future__ import annotations

import pytest

from hallulab.agents.models.answers import UnparseableAnswer
from hallulab.agents.retrieval.knowledge import reformulate, tidy_query
from hallulab.scenarios.transcript import Message
from hallulab.testing.scripted import last_user, scripted_pool

HISTORY = (Message(role="user", text="Is the pool open?"), Message(role="assistant", text="Yes, until 8 pm."))


async def test_the_dialogue_is_asked_about_and_the_answer_tidied() -> None:
    pool, transport = scripted_pool(lambda _: 'Query: "What does the pool cost?"\nMore.')
    query = await reformulate(pool.session("x", seed=7), HISTORY, "And what does it cost?")
    assert query == "What does the pool cost?"
    expected = "User: Is the pool open?\nAssistant: Yes, until 8 pm.\nUser: And what does it cost?\n\n"
    assert last_user(transport.requests[0]) == expected + "Rewrite the last message:"


async def test_sessions_of_different_seed_and_role_share_one_request() -> None:
    pool, transport = scripted_pool(lambda _: "What does the pool cost?")
    for role, seed in (("chatbot", 1), ("halludetect", 2)):
        session = pool.session(role, seed=seed)
        await reformulate(session, HISTORY, "And what does it cost?")
        assert [call.purpose for call in session.calls] == [f"{role}.reformulate"]
    assert len(transport.requests) == 1


async def test_an_empty_query_is_an_error() -> None:
    pool, _ = scripted_pool(lambda _: '""')
    with pytest.raises(UnparseableAnswer, match="to nothing"):
        await reformulate(pool.session("x"), (), "Hello?")


@pytest.mark.parametrize(
    ("text", "query"),
    [
        ("User: how?", "how?"),
        ("**Question:** how?", "how?"),
        ("'how?'", "how?"),
        ("how?\nor", "how?"),
        ("", ""),
        ("```\nhow?\n```", "how?"),
        ("```text\r\nhow?\r\n```", "how?"),
        ("```", ""),
    ],
)
def test_labels_and_quotation_marks_are_taken_off(text: str, query: str) -> None:
    assert tidy_query(text) == query
