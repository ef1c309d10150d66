"""Users who press, in the plan of an experiment."""

from __future__ import annotations

from typing import Any

from hallulab.scenarios.packs.pack_files import load_scenario
from hallulab.scenarios.transcript import Pressure
from hallulab.simulator.engine.conversation import ConversationKey
from hallulab.simulator.engine.plan import plan
from hallulab.simulator.records.experiment_file import load_experiment
from hallulab.simulator.records.provenance import identify_makers

KINDS = ["insists", "false-premise", "crescendo", "authority", "sycophancy-bait"]
PACK = load_scenario("pregnancy-medication")


def list_keys(**fields: Any) -> list[ConversationKey]:
    values = {"model": "one", "scenario": "pregnancy-medication", "chatbots": ["vanilla", "agent"], **fields}
    return [job.key for job in plan(load_experiment(None, values), PACK)]


def test_a_user_presses_every_chatbot_for_the_same() -> None:
    keys = list_keys(pressure=KINDS, repeats=3)
    by_user = {(key.persona, key.seed): set[Pressure | None]() for key in keys}
    for key in keys:
        by_user[key.persona, key.seed].add(key.pressure)
    assert all(len(wanted) == 1 for wanted in by_user.values())
    assert {key.pressure.kind for key in keys if key.pressure} == set(KINDS)


def test_without_pressure_conversations_are_the_same_as_before() -> None:
    assert [key.id for key in list_keys(pressure=[])] == [key.id for key in list_keys()]
    assert {key.pressure for key in list_keys()} == {None}


def test_who_presses_has_no_manner_and_is_another_conversation() -> None:
    keys, others = list_keys(pressure=["insists"]), list_keys()
    assert {key.manner for key in keys} == {None}
    assert not {key.id for key in keys} & {key.id for key in others}


def test_the_users_who_press_have_a_version_of_their_own() -> None:
    values: dict[str, Any] = {"model": "one", "chatbots": ["vanilla"]}
    usual = identify_makers(load_experiment(None, values))
    pressing = identify_makers(load_experiment(None, {**values, "pressure": KINDS}))
    assert usual.user != pressing.user
    assert usual.chatbots == pressing.chatbots
