"""What a form asks for: its YAML does the same run, and what only a file may name is refused."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from hallulab.simulator.options.groups import ModelOptions
from hallulab.simulator.records.experiment import Experiment
from hallulab.simulator.records.experiment_file import load_experiment
from hallulab.simulator.viewer.asked_run import HEAD, fill_form, read_asked_run
from hallulab.simulator.viewer.form import MORE, FormError
from hallulab.simulator.viewer.offers import NOTHING_OFFERED, StartSource, load_start_source
from hallulab.testing.tiny_pack import make_pack

PLAIN = {"chatbots": ["vanilla", "editor"], "detectors": ["lexical"]}
OWN = "- {name: mine, kind: callable, options: {target: 'my_bot:answer'}}"


@pytest.fixture
def source(tmp_path: Path) -> StartSource:
    return StartSource(Experiment(), tmp_path)


@pytest.fixture
def own(tmp_path: Path) -> StartSource:
    """What the command line offers with a file that names a pack, a bot and a detector of ours."""
    pack = make_pack(tmp_path / "pack")
    file = tmp_path / "experiment.yaml"
    file.write_text(
        f"scenario: {pack}\nchatbots:\n{OWN}\n- vanilla\ndetectors:\n"
        "- {name: strict, kind: lexical, options: {threshold: 0.1}}\nmanners: []\nmax_turns: 3\n"
    )
    (tmp_path / "runs").mkdir()
    return load_start_source(ModelOptions(config=file), [tmp_path / "runs"])


FORMS: list[dict[str, Any]] = [
    {},
    {"limit": "2", "seed": "-7", "timed": False, "timeout": "2.5"},
    {"model": "yes", "base_url": "http://127.0.0.1:9/v1", "concurrency": "auto"},
    {"model": "1e3 # no: [comment]", "base_url": "http://127.0.0.1:9/v1", "concurrency": "16"},
    {"model": "<b>\u00e9 'q' \"q\"", "base_urls": "http://127.0.0.1:9/v1\nhttp://127.0.0.1:8/v1"},
    {"model": "smollm2-135m"},
    {"model": "smollm2-135m", "max_turns": "4", "top_k": "2"},
    {"chatbots": ["vanilla", "prompt-engineered", "editor", "fact-checker", "agent"], "detectors": []},
    {"chatbots": ["editor", "vanilla"], "detectors.more": "- {name: a, kind: lexical}\n- halludetect"},
    {"chatbots.more": "- {name: short, kind: vanilla, options: {max_tokens: 50}}"},
    {"attack": "{poison_ratio: 0.5, retrieval: {empty_ratio: 0.1}}", "manners": "own"},
    {"until_decided": "true"},
    {"until_decided": "{margin: 0.3, budget: 8personas}"},
    {"models": "{big: {model: m}}", "roles": "{user: big}", "reply_tokens": "40"},
    {"models": "{big: {model: m}}", "user": "{models: [big, default]}"},
    {"scenario": "pregnancy-medication", "count": "5"},
    {"endpoint_limits": "{requests: 2}", "base_url": "http://127.0.0.1:9/v1", "model": "m"},
]


@pytest.mark.parametrize("form", FORMS)
def test_the_yaml_does_the_same_run(form: dict[str, Any], source: StartSource, tmp_path: Path) -> None:
    asked = read_asked_run(source, {**PLAIN, **form})
    file = tmp_path / "that.yaml"
    file.write_text(asked.yaml)
    assert load_experiment(file, {}).model_dump() == asked.experiment.model_dump()


def test_the_yaml_has_only_what_differs_from_the_defaults(source: StartSource) -> None:
    usual = {name: [one.name for one in getattr(Experiment(), name)] for name in ("chatbots", "detectors")}
    assert read_asked_run(source, {**usual, "limit": "", "max_turns": "4", "timed": True}).yaml == HEAD
    asked = read_asked_run(source, {**usual, "max_turns": "3", "seed": "0"})
    assert asked.yaml == f"{HEAD}max_turns: 3\n"


def test_the_defaults_of_a_model_are_left_out_and_what_differs_from_them_is_not(source: StartSource) -> None:
    asked = read_asked_run(source, {**PLAIN, "model": "smollm2-135m", "max_turns": "4", "top_k": "2"})
    assert asked.yaml.splitlines()[1:] == [
        "chatbots:",
        "- vanilla",
        "- editor",
        "detectors:",
        "- lexical",
        "model: smollm2-135m",
        "max_turns: 4",
    ]


def test_the_plan_says_how_many_conversations_and_where(source: StartSource) -> None:
    endpoint = {"model": "m", "base_url": "http://127.0.0.1:9/v1"}
    asked = read_asked_run(source, {**PLAIN, **endpoint, "limit": "3", "repeats": "2"})
    assert asked.conversations == 12
    assert asked.sentences == (
        "12 conversations of 2 chatbots, of at most 4 turns, judged by 1 detector.",
        "The model is m, at http://127.0.0.1:9/v1.",
        f"The run is written to a new folder in {source.folder}, named by the time.",
    )


REFUSED = [
    ({"limit": "0"}, "limit", "input should be greater than or equal to 1."),
    ({"min_turns": "9"}, "min_turns", "min_turns 9 is more than max_turns 4."),
    ({"count": "2", "repeats": "2"}, "count", "`count` and `repeats` exclude each other"),
    ({"roles": "{user: big}"}, "roles", "roles name the model 'big', which is not under `models`."),
    ({"attack": "{poison_ratio: 4}"}, "attack", "field `attack.poison_ratio`: input should be less"),
    ({"base_url": "ftp://x"}, "base_url", "'ftp://x' is no address"),
    ({"base_url": "http://me:pass@127.0.0.1/v1"}, "base_url", "a URL with `@` or `?` may hold a password"),
    ({"base_url": "http://127.0.0.1:9/v1"}, "model", "name the model that"),
    ({"personas": ["nobody"]}, "personas", "scenario consumer-grievance-india has no persona 'nobody'"),
    ({"chatbots": []}, "chatbots", "is empty; give at least 1."),
    ({"chatbots": ["nobody"]}, "chatbots", "there is no chatbot 'nobody'"),
    ({"detectors": ["nobody"]}, "detectors", "there is no detector 'nobody'"),
    (
        {"chatbots.more": "- {name: x, kind: editor, options: {nope: 1}}"},
        "chatbots",
        "chatbot editor: there is no",
    ),
    ({"scenario": "../../etc"}, "scenario", "there is no such scenario here. Choose one of the list."),
    ({"scenario": "/etc"}, "scenario", "there is no such scenario here. Choose one of the list."),
    ({"chatbots.more": OWN}, "chatbots", "mine runs code of yours, which no page may start."),
    ({"chatbots": ["autogen"]}, "chatbots", "autogen runs code of yours, which no page may start."),
    (
        {"chatbots.more": "- {name: x, kind: guarded, options: {chatbot: {kind: callable}}}"},
        "chatbots",
        "x runs code of yours, which no page may start.",
    ),
    (
        {"chatbots.more": "- {name: x, kind: guarded, options: {policy: ../mine.yaml}}"},
        "chatbots",
        "x: an option is a path, '../mine.yaml'.",
    ),
    (
        {"detectors.more": "- {name: x, kind: combined, options: {model: /tmp/evil.skops}}"},
        "detectors",
        "x: an option is a path, '/tmp/evil.skops'.",
    ),
    ({"model": "/etc"}, "model", "this page loads no model from a folder, '/etc'."),
    ({"model": "a/../../b"}, "model", "this page loads no model from a folder, 'a/../../b'."),
    ({"embedding_model": "~/evil"}, "embedding_model", "this page loads no model from a folder, '~/evil'."),
    ({"models": "{big: {model: ./evil}}"}, "models", "this page loads no model from a folder, './evil'."),
    (
        {"embedding_model": "x" * 300},
        "embedding_model",
        f"this page loads no model from a folder, '{'x' * 100}\u2026'.",
    ),
    ({"model": "we\u200bights"}, "model", "this page loads no model from a folder, 'we\\u200bights'."),
    ({"model": "we\nights"}, "model", "this page loads no model from a folder, 'we\\nights'."),
    (
        {"detectors.more": '- {name: x, kind: hhem, options: {weights: "we\\u200bights"}}'},
        "detectors",
        "x: an option is a path, 'we\\u200bights'.",
    ),
    (
        {"detectors.more": "- {name: x, kind: logic-graph, options: {reranker_model: ./mine}}"},
        "detectors",
        "x: an option is a path, './mine'.",
    ),
    ({"api_key_env": "sk-secret"}, "api_key_env", "this is no name of an environment variable."),
    ({"out": "/etc"}, "", "unknown field `out`."),
    ({"server_flags": "--x"}, "", "unknown field `server_flags`."),
]


@pytest.mark.parametrize(("form", "field", "sentence"), REFUSED)
def test_a_field_that_is_wrong_is_told_in_a_sentence(
    form: dict[str, Any], field: str, sentence: str, source: StartSource
) -> None:
    with pytest.raises(FormError) as refused:
        read_asked_run(source, {**PLAIN, **form})
    assert refused.value.field == field
    assert str(refused.value).startswith(sentence)
    assert "sk-secret" not in str(refused.value)


def test_a_path_of_this_folder_is_one_although_it_looks_like_a_name(
    source: StartSource, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "weights").mkdir()
    monkeypatch.chdir(tmp_path)
    with pytest.raises(FormError, match="this page loads no model from a folder, 'weights'"):
        read_asked_run(source, {**PLAIN, "model": "weights"})


def test_a_key_that_is_not_in_the_environment_is_told(
    source: StartSource, monkeypatch: pytest.MonkeyPatch
) -> None:
    form = {**PLAIN, "model": "m", "base_url": "https://models.example/v1", "api_key_env": "MY_KEY"}
    with pytest.raises(FormError, match="set the environment variable MY_KEY") as refused:
        read_asked_run(source, form)
    assert refused.value.field == "api_key_env"
    monkeypatch.setenv("MY_KEY", "abc")
    assert "api_key_env: MY_KEY" in read_asked_run(source, form).yaml


def test_what_the_experiment_file_names_can_be_chosen(own: StartSource) -> None:
    form = {"scenario": own.experiment.scenario, "chatbots": ["mine"], "detectors": ["strict"]}
    asked = read_asked_run(own, form)
    assert asked.experiment.chatbots == own.experiment.chatbots[:1]
    assert asked.experiment.detectors == own.experiment.detectors
    assert asked.conversations == 1


def test_what_the_experiment_file_names_is_not_changed_by_the_page(own: StartSource) -> None:
    other = OWN.replace("my_bot:answer", "os:system")
    with pytest.raises(FormError, match="mine runs code of yours"):
        read_asked_run(own, {"scenario": own.experiment.scenario, f"chatbots{MORE}": other})


def test_the_form_begins_with_what_the_command_line_says(own: StartSource) -> None:
    shown = {one.field.name: one.text for one in fill_form(own)}
    assert {name: shown[name] for name in ("max_turns", "manners", "limit", "seed")} == {
        "max_turns": "3",
        "manners": "[]",
        "limit": "",
        "seed": "",
    }
    assert [one.name for one in own.list_offered("chatbots")[-1:]] == ["mine"]


def test_bots_that_run_code_are_offered_by_the_file_alone(own: StartSource, source: StartSource) -> None:
    names = {one.name for one in source.list_offered("chatbots")}
    assert names == {"vanilla", "prompt-engineered", "editor", "fact-checker", "agent", "endpoint", "guarded"}
    assert {one.name for one in own.list_offered("chatbots")} == names | {"mine"}


def test_a_viewer_of_run_folders_alone_starts_none() -> None:
    with pytest.raises(FormError, match="No folder is shown that runs can be written in"):
        read_asked_run(NOTHING_OFFERED, PLAIN)
