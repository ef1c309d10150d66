from __future__ import annotations

import json

import pytest

from hallulab.agents.models.answers import UnparseableAnswer
from hallulab.agents.users.chats import ChatCase, numbers, parts, read_case, read_manner
from hallulab.agents.users.personas import MANNERS
from hallulab.scenarios.transcript import Message
from hallulab.testing.scripted import last_user, scripted_pool

GOALS = ["Learn what a card costs.", "learn What a card costs", "how long a card lasts?"]


def answer(grievance: str = "She lost a card.", goals: object = GOALS, facts: object = ()) -> str:
    return json.dumps({"grievance": grievance, "goals": goals, "facts": facts})


async def test_a_case_has_different_goals_and_facts_that_are_not_empty() -> None:
    pool, transport = scripted_pool(lambda _: answer("She\nlost a card.", facts=["It was in\nMay", " "]))
    session = pool.session("personas")
    assert await read_case(session, "cards", "Ada Moss", "The user lost\na card {{name}}.", 0) == ChatCase(
        grievance="She lost a card.",
        goals=("Learn what a card costs", "Learn how long a card lasts"),
        facts=("It was in May",),
    )
    assert [call.purpose for call in session.calls] == ["personas.case"]
    assert last_user(transport.requests[0]) == "Name: Ada Moss\nSummary: The user lost a card {{name}}."
    assert transport.requests[0]["temperature"] == 0


@pytest.mark.parametrize(
    ("given", "told"),
    [
        (answer(" "), "told of no grievance"),
        (
            answer(goals=["Learn how long lost things are kept"]),
            "the model copied an example: 'Learn how long",
        ),
        (answer(goals=["Learn"]), "the model wrote no goal: 'Learn'"),
        (answer(goals=[]), "case"),
        (answer(goals=[f"Learn who paid {number}" for number in range(5)]), "case"),
    ],
)
async def test_what_is_no_case_is_refused(given: str, told: str) -> None:
    pool, _ = scripted_pool(lambda _: given)
    with pytest.raises(UnparseableAnswer, match=told):
        await read_case(pool.session("personas"), "cards", "Ada Moss", "The user lost a card.", 0)


CHAT = (
    Message(role="user", text="Card?\nNow!"),
    Message(role="assistant", text="It costs 5."),
    Message(role="user", text="x" * 300),
)


@pytest.mark.parametrize(
    ("share", "manner"), [({"B": 0.6, "F": 0.4}, MANNERS[1]), ({"B": 0.4, "F": 0.6}, None)]
)
async def test_the_manner_is_the_likeliest_one_or_none(share: dict[str, float], manner: str | None) -> None:
    pool, transport = scripted_pool(lambda _: share)
    assert await read_manner(pool.session("personas"), CHAT) == manner
    asked = last_user(transport.requests[0])
    assert asked.startswith(f"Descriptions:\nA. {MANNERS[0]}\n")
    assert asked.endswith(
        f"F. None of these\n\nMessages:\n- Card? Now!\n- {'x' * 199}…\n\nWhich one fits? Letter:"
    )


@pytest.mark.parametrize(
    ("goal", "found"),
    [
        ("Learn what a card costs", ["Learn what a card costs"]),
        ("Learn what bread and butter cost", ["Learn what bread and butter cost"]),
        (
            "Learn what it costs and Who pays, and when",
            ["Learn what it costs", "Learn Who pays", "Learn when"],
        ),
    ],
)
def test_a_goal_is_cut_where_another_question_begins(goal: str, found: list[str]) -> None:
    assert parts(goal) == found


def test_numbers_are_equal_however_they_are_written() -> None:
    assert (
        numbers("Rs 1,000 on 3 May 2026") == numbers("1000 rupees, 3rd of May, 2026") == {"1000", "3", "2026"}
    )
    assert numbers("sixty days") == {"60"}
    assert numbers("Her umbrella is green") == frozenset()
