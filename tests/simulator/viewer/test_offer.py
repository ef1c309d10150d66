"""What a page may start: no code, folders or files but those that the command line names."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml

from hallulab.scenarios.errors import UsageError
from hallulab.simulator.options.groups import ModelOptions
from hallulab.simulator.records.experiment import Experiment
from hallulab.simulator.viewer.offer import Offer, load_offer
from hallulab.simulator.viewer.start_page import plan_run
from hallulab.testing.tiny_pack import make_pack

PLAIN: dict[str, Any] = {"chatbots": ["vanilla", "editor"], "detectors": ["lexical"]}
OWN: dict[str, Any] = {"name": "mine", "kind": "callable", "options": {"target": "my_bot:answer"}}


@pytest.fixture
def offer(tmp_path: Path) -> Offer:
    return Offer(Experiment(), tmp_path)


@pytest.fixture
def own(tmp_path: Path) -> Offer:
    """What the command line offers with a file that names a pack, a bot and a detector of ours."""
    file = tmp_path / "experiment.yaml"
    strict = {"name": "strict", "kind": "lexical", "options": {"threshold": 0.1}}
    values = {
        "scenario": str(make_pack(tmp_path / "pack")),
        "chatbots": [OWN, "vanilla"],
        "detectors": [strict],
    }
    file.write_text(yaml.safe_dump(values))
    (tmp_path / "runs").mkdir()
    return load_offer(ModelOptions(config=file), [tmp_path / "runs"])


def bot(kind: str, **options: Any) -> dict[str, Any]:
    return {"chatbots": [{"name": "x", "kind": kind, "options": options}]}


def judge(kind: str, **options: Any) -> dict[str, Any]:
    return {"detectors": [{"name": "x", "kind": kind, "options": options}]}


def no_path(where: str, value: str) -> str:
    return f"{where}: no page may start {value!r}, which is code, a file or a folder."


NO_SCENARIO = "experiment.yaml, line 6: there is no such scenario here."

REFUSED = [
    ({"limit": 0}, "experiment.yaml, line 6: limit: input should be greater than or equal to 1"),
    ({"roles": {"user": "big"}}, "roles name the model 'big', which is not under `models`"),
    ({"base_url": "ftp://x"}, "'ftp://x' is no address"),
    ({"base_url": "http://me:pass@127.0.0.1/v1"}, "a URL with `@` or `?` may hold a password"),
    ({"base_url": "http://127.0.0.1:9/v1"}, "name the model that"),
    ({"personas": ["nobody"]}, "scenario consumer-grievance-india has no persona 'nobody'"),
    ({"chatbots": []}, "experiment.yaml, line 1: chatbots: is empty; give at least 1"),
    ({"chatbots": ["nobody"]}, "experiment.yaml, line 2: there is no chatbot 'nobody'"),
    ({"detectors": ["nobody"]}, "there is no detector 'nobody'"),
    (bot("editor", nope=1), "chatbot editor: there is no"),
    ({"scenario": "../../etc"}, NO_SCENARIO),
    ({"scenario": "/etc"}, NO_SCENARIO),
    ({"scenario": ["/etc"]}, NO_SCENARIO),
    ({"chatbots": [OWN]}, "mine: no page may start 'callable', which is code"),
    ({"chatbots": ["autogen"]}, "autogen: no page may start 'autogen', which is code"),
    (bot("guarded", chatbot={"kind": "callable"}), no_path("x", "callable")),
    (bot("guarded", policy="../mine.yaml"), no_path("x", "../mine.yaml")),
    (judge("combined", model="/tmp/evil.npz"), no_path("x", "/tmp/evil.npz")),
    (judge("hhem", weights="we\u200bights"), no_path("x", "we\u200bights")),
    (judge("logic-graph", reranker_model="./mine"), no_path("x", "./mine")),
    ({"model": "/etc"}, no_path("model", "/etc")),
    ({"model": "a/../../b"}, no_path("model", "a/../../b")),
    ({"model": "we\u200bights"}, no_path("model", "we\u200bights")),
    ({"model": "we\nights"}, no_path("model", "we\nights")),
    ({"embedding_model": "~/evil"}, no_path("embedding_model", "~/evil")),
    ({"embedding_model": "x" * 300}, no_path("embedding_model", "x" * 100 + "…")),
    ({"models": {"big": {"model": "./evil"}}}, no_path("models", "./evil")),
    ({"api_key_env": "sk-secret"}, "api_key_env: this is no name of an environment variable."),
    ({"out": "/etc"}, "experiment.yaml, line 6: out: unknown key "),
    ({"server_flags": "--x"}, "experiment.yaml, line 6: server_flags: unknown key."),
]


@pytest.mark.parametrize(("fields", "sentence"), REFUSED)
def test_what_a_page_may_not_start_is_refused_in_a_sentence(
    fields: dict[str, Any], sentence: str, offer: Offer
) -> None:
    with pytest.raises(UsageError) as refused:
        plan_run(offer, yaml.safe_dump({**PLAIN, **fields}, sort_keys=False))
    assert sentence in str(refused.value)
    assert "sk-secret" not in str(refused.value)


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("", "experiment.yaml is empty."),
        ("limit: 2: 3", "experiment.yaml, line 1: not valid YAML"),
        ("- vanilla", "experiment.yaml, line 1: a list of `key: value` lines is expected here"),
        ("limit: !!python/object/apply:os.system [ls]", "experiment.yaml, line 1: not valid YAML"),
    ],
)
def test_a_text_that_is_no_experiment_file_is_refused(text: str, sentence: str, offer: Offer) -> None:
    with pytest.raises(UsageError) as refused:
        plan_run(offer, text)
    assert str(refused.value).startswith(sentence)


def test_a_path_of_this_folder_is_one_although_it_looks_like_a_name(
    offer: Offer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "weights").mkdir()
    monkeypatch.chdir(tmp_path)
    with pytest.raises(UsageError, match="model: no page may start 'weights'"):
        plan_run(offer, yaml.safe_dump({**PLAIN, "model": "weights"}))


def test_a_key_that_is_not_in_the_environment_is_reported(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fields: dict[str, Any] = {"model": "m", "base_url": "https://models.example/v1", "api_key_env": "MY_KEY"}
    offer = Offer(Experiment(**fields), tmp_path)
    text = yaml.safe_dump({**PLAIN, **fields})
    with pytest.raises(UsageError, match="set the environment variable MY_KEY"):
        plan_run(offer, text)
    monkeypatch.setenv("MY_KEY", "abc")
    assert plan_run(offer, text)[0].api_key_env == "MY_KEY"


def test_what_the_command_line_names_can_be_started(own: Offer) -> None:
    values = own.experiment.model_dump(mode="json", exclude_unset=True)
    experiment, sentences = plan_run(own, yaml.safe_dump(values))
    assert experiment.chatbots == own.experiment.chatbots
    assert sentences[0].startswith("2 conversations of 2 chatbots")


def test_what_the_command_line_names_is_not_changed_by_the_page(own: Offer) -> None:
    other = {**OWN, "options": {"target": "os:system"}}
    with pytest.raises(UsageError, match="mine: no page may start 'callable'"):
        plan_run(own, yaml.safe_dump({**PLAIN, "chatbots": [other]}))


def test_new_folders_are_named_by_the_time_and_differ(offer: Offer) -> None:
    first, second = offer.make_folder().path, offer.make_folder().path
    assert (first != second, first.parent, second.is_dir()) == (True, offer.folder, True)


def test_without_a_folder_for_runs_nothing_is_made() -> None:
    with pytest.raises(UsageError, match="No folder is shown that runs can be written in"):
        Offer().make_folder()


def test_whoever_wants_to_talk_shows_a_folder_for_it(tmp_path: Path) -> None:
    (tmp_path / "conversations.jsonl").touch()
    assert load_offer(ModelOptions(), [tmp_path]) == Offer()
    with pytest.raises(UsageError, match="is a run folder, and what you say is saved in a folder of its own"):
        load_offer(ModelOptions(model="m"), [tmp_path])
