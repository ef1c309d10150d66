"""The plan: which conversations an experiment consists of, and what makes one another."""

from __future__ import annotations

from typing import Any

import pytest

from hallulab.scenarios.errors import UsageError
from hallulab.scenarios.packs.pack import Document, Persona, Scenario, Specialist
from hallulab.simulator.engine.plan import plan
from hallulab.simulator.records.experiment_file import load_experiment

DOCUMENT = Document(name="d", title="D", source="nowhere", text="Text.")


def persona(id: str, **changes: Any) -> Persona:
    return Persona.model_validate(
        {"id": id, "name": "N", "grievance": "g", "goals": ["x"], "manner": "m", "summary": "s"} | changes
    )


def scenario(*personas: Persona, domain: str = "a domain") -> Scenario:
    return Scenario(
        name="s",
        title="t",
        description="d",
        domain=domain,
        assistant="a",
        functions=(),
        specialists=(Specialist(name="guide", title="Guide", duty="guides"),),
        identity_thresholds={},
        documents=(DOCUMENT,),
        personas=personas or (persona("p"), persona("q")),
    )


def ids(pack: Scenario | None = None, **fields: Any) -> list[str]:
    """Identifiers of the conversations; of one persona with Vanilla, unless told otherwise."""
    values = {"chatbots": ["vanilla"], "model": "m", "limit": 1} | fields
    return [job.key.id for job in plan(load_experiment(None, values), pack or scenario())]


def test_conversations_come_persona_by_persona_then_seed_then_chatbot() -> None:
    experiment = load_experiment(
        None, {"chatbots": ["vanilla", "editor"], "model": "m", "repeats": 2, "seed": 5}
    )
    keys = [job.key for job in plan(experiment, scenario())]
    assert [(key.persona, key.seed, key.chatbot) for key in keys] == [
        (who, seed, bot) for who in ("p", "q") for seed in (5, 6) for bot in ("vanilla", "editor")
    ]
    assert len({key.id for key in keys}) == 8


@pytest.mark.parametrize(
    "fields",
    [
        {"limit": 2},
        {"repeats": 3},
        {"personas": ["p", "q"], "limit": None},
        {"chatbots": ["vanilla", "editor"]},
        {"detectors": ["lexical"]},
        {"concurrency": 1, "timeout": 5.0, "base_url": "http://127.0.0.1:9/v1"},
    ],
)
def test_how_much_is_run_and_how_leaves_a_conversation_the_same(fields: dict[str, Any]) -> None:
    assert ids()[0] == ids(**fields)[0]


@pytest.mark.parametrize(
    "fields",
    [
        {"model": "other"},
        {"seed": 1},
        {"min_turns": 1},
        {"max_turns": 5},
        {"top_k": 5},
        {"reply_tokens": 40},
        {"embedding_model": "other"},
        {"chatbots": ["editor"]},
        {"chatbots": [{"name": "mine", "kind": "vanilla"}]},
        {"models": {"big": {"model": "big"}}, "roles": {"user": "big"}},
    ],
)
def test_what_determines_a_conversation_makes_it_another(fields: dict[str, Any]) -> None:
    assert ids()[0] != ids(**fields)[0]


def test_an_edited_persona_makes_another_conversation_of_its_own_only_and_a_pack_of_all() -> None:
    before = ids(scenario(persona("p"), persona("q")), limit=None)
    after = ids(scenario(persona("p", manner="curt"), persona("q")), limit=None)
    assert (before[0] == after[0], before[1] == after[1]) == (False, True)
    assert ids(scenario(domain="another domain")) != ids()


def test_an_edited_prompt_makes_other_conversations(monkeypatch: pytest.MonkeyPatch) -> None:
    before = ids()
    monkeypatch.setattr(
        "hallulab.simulator.records.provenance.compute_chatbot_version", lambda *asked: "edited"
    )
    assert ids() != before


def test_personas_are_held_in_the_order_they_are_named() -> None:
    experiment = load_experiment(None, {"chatbots": ["vanilla"], "personas": ["q", "p"]})
    assert [job.key.persona for job in plan(experiment, scenario())] == ["q", "p"]


def test_the_command_that_shows_personas_names_the_pack_as_it_was_given() -> None:
    with pytest.raises(UsageError, match=r"`hallulab list personas --scenario 'my pack'` shows them\.$"):
        ids(scenario="my pack", personas=["nobody"])


def test_the_largest_experiment_is_planned(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("hallulab.simulator.engine.plan.MOST_CONVERSATIONS", 4)
    assert len(ids(limit=2, repeats=2)) == 4
    with pytest.raises(UsageError, match="are 6 conversations"):
        ids(limit=2, repeats=3)


@pytest.mark.parametrize("seed", [2**63 - 1, 2**63, -(2**63) - 1])
def test_seeds_that_no_server_takes_are_refused(seed: int) -> None:
    with pytest.raises(UsageError, match="seed"):
        ids(seed=seed, repeats=2)


def test_an_attack_makes_other_conversations_and_none_the_same() -> None:
    attacks = [None, {}, {"poison_ratio": 0.5}, {"injections": 0.5}, {"seed": 1}, {"retrieval": {"top_k": 1}}]
    found = [ids(attack=attack) for attack in attacks]
    assert found[0] == ids()
    assert ids(attack={"retrieval": None}) == found[1]
    assert len({id for one in found for id in one}) == 6


def test_all_chatbots_get_the_same_order_in_the_same_turn() -> None:
    values = {
        "chatbots": ["vanilla", "editor"],
        "model": "m",
        "attack": {"user_injections": 1.0},
        "repeats": 5,
    }
    jobs = list(plan(load_experiment(None, values), scenario()))
    orders = [job.order for job in jobs]
    assert None not in orders
    assert orders[::2] == orders[1::2]
    assert len({order.order.id for order in orders if order}) > 3
    assert [job.order for job in plan(load_experiment(None, {"model": "m"}), scenario())] == [None] * 10


def drawn(count: int, **fields: Any) -> list[tuple[str, int]]:
    """Persona and seed of each user drawn."""
    values = {"chatbots": ["vanilla"], "model": "m", "count": count, **fields}
    pack = scenario(*(persona(name) for name in "pqr"))
    return [(job.key.persona, job.key.seed) for job in plan(load_experiment(None, values), pack)]


def test_users_are_drawn_seed_by_seed_and_each_persona_as_often_as_another() -> None:
    found = drawn(7, seed=5)
    assert [seed for _, seed in found] == [5, 5, 5, 6, 6, 6, 7]
    assert [{who for who, seed in found if seed == one} for one in (5, 6)] == [set("pqr")] * 2
    assert len(set(found)) == 7


def test_more_users_begin_with_the_same_ones() -> None:
    assert drawn(20)[:7] == drawn(7)


def test_a_drawn_user_has_the_conversation_of_the_same_persona_and_seed() -> None:
    assert set(ids(count=1, limit=1)) == set(ids(limit=1))


def test_every_drawn_user_talks_with_every_chatbot() -> None:
    assert len(drawn(4, chatbots=["vanilla", "editor"])) == 8


def test_a_plan_knows_its_length_without_being_made() -> None:
    experiment = load_experiment(None, {"chatbots": ["vanilla", "editor"], "model": "m", "count": 250_000})
    assert len(plan(experiment, scenario())) == 500_000


def test_too_many_users_are_refused() -> None:
    with pytest.raises(UsageError) as caught:
        drawn(2_000_000)
    assert str(caught.value) == (
        "2,000,000 × 1 (users, chatbots) are 2,000,000 conversations, and one experiment has at most "
        "1,000,000. Lower `count`."
    )


def test_count_and_repeats_exclude_each_other() -> None:
    with pytest.raises(UsageError, match="`count` and `repeats` exclude each other"):
        drawn(3, repeats=2)
