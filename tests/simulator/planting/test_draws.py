"""Users are drawn so that quotas are met before anything is simulated."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

import pytest

from hallulab.agents.users.personas import draw_manner
from hallulab.scenarios.errors import UsageError
from hallulab.scenarios.packs.pack_files import load_without_documents
from hallulab.simulator.planting.draws import Shares, UserDraw, plan_cells, split_counts
from hallulab.simulator.planting.sides import PackSide

SCENARIO = load_without_documents("consumer-grievance-india")
SHARES = Shares(
    topics=None,
    goals={"answer": 0.7, "decline": 0.3},
    manners={"plain": 0.75, "terse": 0.25},
    chatbots={"vanilla": 0.5, "agent": 0.5},
    test=0.2,
)


def make_side(side: str, declining: tuple[str, ...] = ("air", "rail")) -> PackSide:
    """A side with two personas of each topic, whose goals are to be answered, and one to be declined."""
    people = [(topic, "answer") for topic in ("air", "rail") for _ in range(2)]
    people += [(topic, "decline") for topic in declining]
    origins = {f"{side}-{number}": (f"{side}-{number}", *one) for number, one in enumerate(people)}
    return PackSide(SCENARIO, origins, 0)


SIDES = {"train": make_side("train"), "test": make_side("test")}


@pytest.mark.parametrize("number", [10, 100, 1000])
def test_every_quota_is_met_exactly(number: int) -> None:
    cells = plan_cells(SIDES, SHARES, number, seed=3)
    assert Counter(cell.side for cell in cells) == {"train": 0.8 * number, "test": 0.2 * number}
    assert Counter(cell.topic for cell in cells) == {"air": number // 2, "rail": number // 2}
    assert Counter(cell.goals for cell in cells) == {"answer": 0.7 * number, "decline": 0.3 * number}
    assert Counter(cell.chatbot for cell in cells) == {"vanilla": number // 2, "agent": number // 2}
    terse = sum(cell.manner == "terse" for cell in cells)
    assert abs(terse - 0.25 * number) <= 0.5


def test_users_have_the_manner_of_their_cell_and_none_is_drawn_twice() -> None:
    cells = plan_cells(SIDES, SHARES, 200, seed=0)
    draw = UserDraw(SIDES, ("plain", "terse"), seed=0)
    users = [draw.draw(cell) for cell in cells]
    assert len(set(users)) == 200
    spoken = [draw_manner(("plain", "terse"), user.persona, user.seed) for user in users]
    assert spoken == [cell.manner for cell in cells]


def test_a_kind_of_goals_that_one_side_alone_has_is_there_as_a_whole() -> None:
    sides = {"train": make_side("train"), "test": make_side("test", declining=())}
    cells = plan_cells(sides, SHARES, 20, seed=0)
    assert Counter((cell.side, cell.goals) for cell in cells) == {
        ("train", "answer"): 10,
        ("train", "decline"): 6,
        ("test", "answer"): 4,
    }


@pytest.mark.parametrize(
    ("goals", "test", "tested"),
    [
        ({"answer": 0.1, "decline": 0.9}, 0.2, 1),  # the training side alone has goals to be declined
        ({"answer": 0.0, "decline": 1.0}, 0.2, 0),
        ({"answer": 1.0, "decline": 0.0}, 0.9, 9),
    ],
)
def test_kinds_of_goals_of_one_side_alone_leave_less_of_the_other(
    goals: dict[str, float], test: float, tested: int
) -> None:
    sides = {"train": make_side("train"), "test": make_side("test", declining=())}
    cells = plan_cells(sides, replace(SHARES, goals=goals, test=test), 10, seed=0)
    assert len(cells) == 10
    assert sum(cell.side == "test" for cell in cells) == tested


def test_topics_and_goals_that_want_another_number_on_the_test_side_are_refused() -> None:
    sides = {"train": make_side("train"), "test": make_side("test", declining=())}
    sides["test"].origins["test-9"] = ("test-9", "sea", "answer")
    shares = replace(SHARES, topics={"sea": 0.8, "air": 0.2}, goals={"answer": 0.1, "decline": 0.9})
    with pytest.raises(UsageError, match="the personas of the train side cannot have these quotas"):
        plan_cells(sides, shares, 10, seed=0)


def test_the_same_seed_draws_the_same_users() -> None:
    cells = plan_cells(SIDES, SHARES, 20, seed=5)
    assert cells == plan_cells(SIDES, SHARES, 20, seed=5)
    one, other = (UserDraw(SIDES, ("plain", "terse"), seed=5) for _ in range(2))
    assert [one.draw(cell) for cell in cells] == [other.draw(cell) for cell in cells]


def test_kinds_of_goals_that_some_topics_lack_shift_the_topics_that_were_not_asked_for() -> None:
    sides = {"train": make_side("train", declining=("rail",))}
    shares = Shares(None, {"decline": 1.0}, {"plain": 1.0}, {"vanilla": 1.0}, 0)
    assert Counter(cell.topic for cell in plan_cells(sides, shares, 6, seed=0)) == {"rail": 6}


def test_quotas_that_no_personas_have_are_refused() -> None:
    sides = {"train": make_side("train", declining=("rail",))}
    shares = Shares({"air": 1.0}, {"decline": 1.0}, {"plain": 1.0}, {"vanilla": 1.0}, 0)
    with pytest.raises(UsageError) as error:
        plan_cells(sides, shares, 6, seed=0)
    assert str(error.value) == (
        "the personas of the train side cannot have these quotas: their goals are answer of 4, decline of 1. "
        "Change --goals or --topics, or give another --seed."
    )


def test_a_topic_of_one_side_is_there_as_a_whole() -> None:
    found = split_counts({"air": {"test"}, "rail": {"train"}}, {"air": 3, "rail": 7}, 1)
    assert found == {"train": {"air": 0, "rail": 7}, "test": {"air": 3, "rail": 0}}
