"""A pack is split into two that share no persona and no document."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from hallulab.agents.retrieval.word_search import WordSearch
from hallulab.scenarios.errors import UsageError
from hallulab.scenarios.packs.goals import GoalLabel
from hallulab.scenarios.packs.pack import Scenario
from hallulab.scenarios.packs.pack_files import load_scenario, write_part
from hallulab.simulator.planting.sides import find_goal_documents, split_pack
from tests.simulator.planting.dialogue_pack import THINGS, TOPICS, write_dialogue_pack


@pytest.fixture(scope="module")
def pack(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_dialogue_pack(tmp_path_factory.mktemp("packs") / "permits")


@pytest.fixture(scope="module")
def scenario(pack: Path) -> Scenario:
    return load_scenario(pack)


def test_each_persona_and_document_is_on_one_side(scenario: Scenario) -> None:
    sides = asyncio.run(split_pack(scenario, 0.34, seed=0))
    assert list(sides) == ["train", "test"]
    documents = [one.name for side in sides.values() for one in side.scenario.documents]
    personas = [origin for side in sides.values() for origin, *_ in side.origins.values()]
    assert sorted(documents) == THINGS
    assert sorted(personas) == sorted(one.id for one in scenario.personas)


def test_goals_stay_with_their_documents(scenario: Scenario) -> None:
    for side in asyncio.run(split_pack(scenario, 0.34, seed=0)).values():
        own = {one.name for one in side.scenario.documents}
        assert {persona.id.partition("-")[2] for persona in side.scenario.personas} == own
        assert side.cut == 0


def test_each_topic_has_its_share_on_the_test_side(scenario: Scenario) -> None:
    sides = asyncio.run(split_pack(scenario, 0.34, seed=0))
    topics = [topic for _, topic, _ in sides["test"].origins.values()]
    assert sorted(topics) == sorted(2 * TOPICS)


def test_without_a_test_side_the_whole_pack_trains(scenario: Scenario) -> None:
    sides = asyncio.run(split_pack(scenario, 0, seed=0))
    assert {name: len(side.scenario.documents) for name, side in sides.items()} == {"train": 12}


def test_a_pack_too_small_for_two_sides_is_refused(scenario: Scenario) -> None:
    small = scenario.model_copy(update={"documents": scenario.documents[:1]})
    with pytest.raises(UsageError) as error:
        asyncio.run(split_pack(small, 0.5, seed=0))
    assert str(error.value) == (
        "scenario permits cannot be split: the train side would have no document. Give a pack with more of "
        "them, or --test 0."
    )


@pytest.mark.parametrize("share", [0.01, 0.2, 0.5, 0.99])
def test_two_personas_with_a_document_each_are_split_whatever_the_share(
    scenario: Scenario, share: float
) -> None:
    kept = ("ann-anchor", "bob-barrel")
    update = {
        "documents": tuple(one for one in scenario.documents if one.name in ("anchor", "barrel")),
        "personas": tuple(one for one in scenario.personas if one.id in kept),
    }
    sides = asyncio.run(split_pack(scenario.model_copy(update=update), share, seed=0))
    assert [len(side.origins) for side in sides.values()] == [1, 1]


def test_goals_of_each_kind_are_a_persona_of_their_own(scenario: Scenario) -> None:
    ann = scenario.personas[0]
    labels = (
        GoalLabel(expect="answer", documents=("anchor",)),
        GoalLabel(expect="decline", because="nowhere"),
    )
    labelled = ann.model_copy(update={"labels": labels})
    [side] = asyncio.run(split_pack(scenario.model_copy(update={"personas": (labelled,)}), 0, 0)).values()
    assert [(one.id, one.goals) for one in side.scenario.personas] == [
        ("ann-anchor-answer", ann.goals[:1]),
        ("ann-anchor-decline", ann.goals[1:]),
    ]
    assert side.origins["ann-anchor-decline"] == ("ann-anchor", "air", "decline")


def test_a_label_names_the_documents_of_its_goal(scenario: Scenario) -> None:
    labels = (
        GoalLabel(expect="ask-back", because="depends", documents=("barrel", "kettle"), needs="age"),
        None,
    )
    labelled = scenario.personas[0].model_copy(update={"labels": labels})
    found = asyncio.run(find_goal_documents(labelled, WordSearch(scenario)))
    assert found == [{"barrel", "kettle"}, {"anchor"}]


def test_a_part_of_a_pack_is_a_pack(pack: Path, scenario: Scenario, tmp_path: Path) -> None:
    part = scenario.model_copy(
        update={
            "name": "permits-part",
            "documents": scenario.documents[2:4],
            "personas": scenario.personas[:1],
        }
    )
    write_part(pack, part, tmp_path / "part")
    assert load_scenario(tmp_path / "part") == part
    assert sorted(path.name for path in (tmp_path / "part" / "documents").iterdir()) == [
        "candle.md",
        "dagger.md",
    ]
