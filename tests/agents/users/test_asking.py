from __future__ import annotations

import pytest

from hallulab.agents.users.user import asks_something, word_question


@pytest.mark.parametrize(
    "message",
    [
        "What is the fee?",
        "where do i complain",
        "by when must I file",
        "to whom do I go then",
        "Thanks. how long do i have",
        "please send me a draft",
        "I need the number of it",
        "I don’t know whom to ask.",
    ],
)
def test_questions_and_requests_ask(message: str) -> None:
    assert asks_something(message)


@pytest.mark.parametrize(
    "message", ["Thank you.", "It cost 4850.", "In May I bought it.", "I see, thanks for the info", ""]
)
def test_thanks_and_facts_ask_nothing(message: str) -> None:
    assert not asks_something(message)


@pytest.mark.parametrize(
    ("goal", "question"),
    [
        ("Learn how to reach it, and its number", "How can I reach it, and its number?"),
        ("Learn where to complain.", "Where can I complain?"),
        (
            "Learn whether she owes anything on a card she never activated",
            "Can you tell me whether I owe anything on a card I never activated?",
        ),
        (
            "Find out whether he has to pay and what his options are",
            "Can you tell me whether I have to pay and what my options are?",
        ),
        ("Learn which time limit matters for her", "Can you tell me which time limit matters for me?"),
        ("Learn whether she tries or he goes", "Can you tell me whether I try or I go?"),
        ("Get a draft of the notice", "Can you give me a draft of the notice?"),
        ("File her complaint", "Can you help me to file my complaint?"),
    ],
)
def test_a_goal_becomes_a_question_of_the_persona(goal: str, question: str) -> None:
    assert word_question(goal) == question
