"""Several models that play the users of one experiment."""

from __future__ import annotations

import re
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hallulab.agents.serving.catalogue import DEFAULT_CPU_MODEL
from hallulab.scenarios.errors import UsageError
from hallulab.simulator.engine.plan import plan
from hallulab.simulator.records.choices import draw_user_model
from hallulab.simulator.records.experiment import Experiment
from hallulab.simulator.records.experiment_file import load_experiment
from hallulab.simulator.records.folder import RunFolder
from hallulab.simulator.records.provenance import identify_makers
from hallulab.testing.scripted import pool_through
from hallulab.testing.tiny_pack import URL, make_pack, words_for_vectors
from tests.kit.serving_models import ServingModels
from tests.simulator.command_line import CommandLine
from tests.simulator.engine.test_plan import persona, scenario

MODELS = {"second": {"model": "two", "base_url": "http://127.0.0.1:9/v1"}, "third": {"model": "three"}}


def experiment(*models: str, **fields: Any) -> Experiment:
    values = {"model": "one", "models": MODELS, "chatbots": ["vanilla", "agent"], "repeats": 20}
    return load_experiment(None, {**values, "user": {"models": list(models)}, **fields})


def test_each_user_has_one_model_with_every_chatbot() -> None:
    keys = [job.key for job in plan(experiment("default", "second"), scenario())]
    by_user = {(key.persona, key.seed): set[str | None]() for key in keys}
    for key in keys:
        by_user[key.persona, key.seed].add(key.user_model)
    assert all(len(models) == 1 for models in by_user.values())
    assert {model for models in by_user.values() for model in models} == {"one", "two"}


@given(st.lists(st.text(min_size=1), min_size=1, unique=True), st.integers(0, 2**31))
def test_the_draw_depends_on_the_persona_and_the_seed_alone(names: list[str], seed: int) -> None:
    wanted = experiment("default", "second", "third")
    found = {name: draw_user_model(wanted, name, seed) for name in names}
    assert {name: draw_user_model(wanted, name, seed) for name in reversed(names)} == found
    assert set(found.values()) <= {"default", "second", "third"}


def test_a_name_that_stands_twice_is_drawn_twice_as_often() -> None:
    wanted = experiment("second", "default", "default")
    found = Counter(draw_user_model(wanted, "p", seed) for seed in range(3_000))
    assert 900 < found["second"] < 1_100


def test_one_model_alone_is_the_same_conversation_as_by_its_role() -> None:
    by_role = load_experiment(
        None, {"model": "one", "models": MODELS, "roles": {"user": "second"}, "chatbots": ["vanilla"]}
    )
    by_list = experiment("second", chatbots=["vanilla"], repeats=1)
    ids = [[job.key.id for job in plan(one, scenario())] for one in (by_role, by_list)]
    assert ids[0] == ids[1]


def test_a_conversation_of_another_model_is_another_one() -> None:
    found = [
        {job.key.id for job in plan(experiment(name, repeats=1), scenario())} for name in ("second", "third")
    ]
    assert not found[0] & found[1]


def test_every_model_of_users_counts_among_the_makers() -> None:
    both, one = identify_makers(experiment("default", "second")), identify_makers(experiment("default"))
    assert both.user != one.user
    assert both.chatbots == one.chatbots
    assert identify_makers(experiment("default", "default")) == one


def test_a_script_has_no_model() -> None:
    scripted = scenario(persona("p", messages=[{"text": "Hello?"}]))
    assert {job.key.user_model for job in plan(experiment("default", "second"), scripted)} == {None}


@pytest.mark.parametrize(
    ("fields", "complaint"),
    [
        ({"user": {"models": []}}, "user.models"),
        ({"user": {"models": ["fourth"]}}, "`user.models` names 'fourth', which is not under `models`"),
        ({"user": {"model": "second"}}, "user.model"),
        ({"roles": {"user": "second"}}, "`user` and `roles.user` exclude each other; give one of them"),
        (
            {"models": {"second": {"model": "one"}}},
            "two of `user.models` are served as 'one', so that no conversation could say which one it had; "
            "leave one out",
        ),
        (
            {"model": None, "models": {"second": {"model": DEFAULT_CPU_MODEL}}},
            f"two of `user.models` are served as '{DEFAULT_CPU_MODEL}'",
        ),
    ],
)
def test_what_is_wrong_is_said_in_one_sentence(fields: dict[str, Any], complaint: str) -> None:
    with pytest.raises(UsageError) as raised:
        experiment("default", "second", **fields)
    assert complaint in str(raised.value)


def test_conversations_say_who_played_the_user(
    hallulab: CommandLine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def answer(body: dict[str, Any]) -> str | dict[str, float]:
        return {"Yes": 0.1, "No": 0.9} if body.get("logprobs") else f"May I ask model {body['model']} of tea?"

    monkeypatch.setattr(
        "hallulab.simulator.engine.models.ModelPool", pool_through(ServingModels(answer, "one", "two"))
    )
    config = tmp_path / "mine.yaml"
    config.write_text(
        "models:\n  second: {model: two}\nuser: {models: [default, second]}\nmanners: [own]\nrepeats: 6\n"
    )
    models = ("--model", "one", "--base-url", URL, "-c", config)
    run = ("run", "--scenario", make_pack(tmp_path / "pack"), *models)
    more = ("--chatbots", "vanilla", "--detectors", "lexical", "--max-turns", "2", "--quiet")
    with words_for_vectors():
        ended = hallulab(*run, *more, "--out", tmp_path / "run")
        assert (ended.code, ended.err) == (0, "")
        config.write_text(config.read_text().replace("[default, second]", "[second, default]"))
        refused = hallulab(*run, *more, "--out", tmp_path / "run")
    folder = RunFolder(tmp_path / "run")
    for held in folder.read_conversations():
        assert {turn.user for turn in held.turns} == {f"May I ask model {held.user_model} of tea?"}
        assert {turn.reply for turn in held.turns} == {"May I ask model one of tea?"}
    assert {held.user_model for held in folder.read_conversations()} == {"one", "two"}
    data = re.search(r"Played by: (one|two)", (tmp_path / "run" / "report.html").read_text())
    assert data is not None
    assert refused.code == 2
    assert "user model" in refused.err


def test_a_file_names_the_line(tmp_path: Path) -> None:
    path = tmp_path / "mine.yaml"
    path.write_text("model: one\nuser:\n  models: []\n")
    with pytest.raises(UsageError, match=r"mine\.yaml, line 3: "):
        load_experiment(path, {})
