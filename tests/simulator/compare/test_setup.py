from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest

from hallulab.simulator.compare.setup import ComponentSetup, RunSetup, describe_setup, list_changes
from hallulab.simulator.records.experiment_json import SavedExperiment
from hallulab.simulator.records.folder import RunFolder


def described(**fields: Any) -> RunSetup:
    """The setup of an experiment.json with those fields of the experiment."""
    experiment = {"scenario": "/home/somebody/packs/shop", "chatbots": ["vanilla"], **fields}
    saved = SavedExperiment.model_validate(
        {"experiment": experiment, "identity": {"scenario": "shop 0123"}, "detectors": {"lexical": "v1"}}
    )
    return describe_setup(saved, ["shop"], {"lexical": "v1"})


def told(before: RunSetup, after: RunSetup) -> list[tuple[str, str, str, str | None, str | None]]:
    return [(one.what, one.of, one.name, one.before, one.after) for one in list_changes(before, after)]


def bot(**fields: Any) -> RunSetup:
    return RunSetup(scenario="s", chatbots={"bot": ComponentSetup.model_validate(fields)})


@pytest.mark.parametrize(
    ("before", "after", "change"),
    [
        (bot(prompts={"a": "1"}), bot(prompts={"a": "2"}), ("prompt", "chatbot bot", "a", "1", "2")),
        (bot(prompts={}, version="1"), bot(prompts={"a": "2"}, version="1"), None),
        (bot(kind="a"), bot(kind="b"), ("kind", "chatbot bot", "", "a", "b")),
        (
            bot(kind="a", prompts={"f": "1"}),
            bot(kind="b", prompts={"g": "2"}),
            ("kind", "chatbot bot", "", "a", "b"),
        ),
        (bot(kind="a"), bot(kind="a", options={"k": "3"}), ("option", "chatbot bot", "k", None, "3")),
        (bot(version="1"), bot(version="2"), ("version", "chatbot bot", "", "1", "2")),
        (bot(version="1"), bot(), None),
    ],
)
def test_what_was_changed_in_a_chatbot(before: RunSetup, after: RunSetup, change: Any) -> None:
    assert told(before, after) == ([] if change is None else [change])


def test_a_version_is_told_only_where_nothing_explains_it() -> None:
    before, after = bot(prompts={"a": "1"}, version="1"), bot(prompts={"a": "2"}, version="2")
    assert [change[0] for change in told(before, after)] == ["prompt"]


@pytest.mark.parametrize(
    ("field", "before", "after", "change"),
    [
        ("documents", {"d": "1", "e": "1"}, {"d": "2", "e": "1"}, ("document", "", "d", "1", "2")),
        ("documents", {"d": "1"}, {"d": "1", "e": "1"}, ("document", "", "e", None, "1")),
        ("documents", {}, {"d": "1"}, None),
        ("scenario_version", "1", "2", ("scenario", "", "", "1", "2")),
        ("personas", {"asha": "1"}, {"asha": "2"}, ("persona", "", "asha", "1", "2")),
        ("personas", {"asha": "1"}, {"ravi": "2"}, None),
        ("models", {"user": "a"}, {"user": "b"}, ("model", "", "user", "a", "b")),
        ("revision", "1", "2", ("model revision", "", "", "1", "2")),
        ("settings", {"top_k": "4"}, {"top_k": "5"}, ("setting", "", "top_k", "4", "5")),
        ("seeds", "0", "1", ("seeds", "", "", "0", "1")),
        ("user", ComponentSetup(version="1"), ComponentSetup(version="2"),
         ("version", "simulated user", "", "1", "2")),
        ("packages", {"hallulab": "1"}, {"hallulab": "2"}, ("package", "", "hallulab", "1", "2")),
    ],
)  # fmt: skip
def test_what_was_changed_in_a_run(field: str, before: Any, after: Any, change: Any) -> None:
    one, other = (RunSetup.model_validate({"scenario": "s", field: value}) for value in (before, after))
    assert told(one, other) == ([] if change is None else [change])


def test_neither_paths_nor_keys_are_kept() -> None:
    options = {
        "url": "http://bot.local/chat",
        "headers": {"Authorization": "Bearer abc123"},
        "api_key": "abc123",
        "max_tokens": 200,
        "style": "short",
        "script": "/home/somebody/bot.py",
        "strict": True,
        "part": {"options": {"file": "C:\\bot.py"}},
    }
    made = described(chatbots=[{"name": "mine", "kind": "endpoint", "options": options}])
    kept = made.chatbots["mine"].options
    assert {name: kept[name] for name in ("max_tokens", "style", "strict")} == {
        "max_tokens": "200",
        "style": "short",
        "strict": "true",
    }
    assert sorted(kept) == ["max_tokens", "part.options.file", "script", "strict", "style", "url"]
    text = made.model_dump_json()
    assert not any(word in text for word in ("somebody", "abc123", "bot.local", "bot.py"))


def test_a_changed_path_is_told_by_its_hash() -> None:
    before, after = (
        described(chatbots=[{"name": "mine", "kind": "callable", "options": {"script": path}}])
        for path in ("/a.py", "/b.py")
    )
    (change,) = list_changes(before, after)
    assert (change.what, change.name) == ("option", "script")
    assert change.before is not None
    assert change.before.startswith("sha256 ")


@pytest.mark.parametrize(("seeds", "text"), [((), ""), ((3,), "3"), ((2, 0, 1), "0 to 2"), ((0, 5), "0, 5")])
def test_seeds_are_told_in_brief(seeds: tuple[int, ...], text: str) -> None:
    saved = SavedExperiment.model_validate(
        {
            "experiment": {"scenario": "s", "chatbots": ["vanilla"]},
            "identity": {},
            "detectors": {},
            "seeds": seeds,
        }
    )
    assert describe_setup(saved, ["s"], {}).seeds == text


def edit(change: Callable[[dict[str, Any]], None]) -> Callable[[RunFolder], RunSetup]:
    def read(run: RunFolder) -> RunSetup:
        value = json.loads(run.experiment.read_text(encoding="utf-8"))
        change(value)
        return describe_setup(SavedExperiment.model_validate(value), ["consumer-grievance-india"], {})

    return read


def test_the_demos_manifest_names_the_prompt_that_was_changed(demo_replay: RunFolder) -> None:
    def change(value: dict[str, Any]) -> None:
        value["sources"]["chatbots"]["vanilla"]["chatbots/generation"] = "0"
        value["made_by"]["chatbots"]["vanilla"] = "0"

    before, after = edit(lambda value: None)(demo_replay), edit(change)(demo_replay)
    (made,) = list_changes(before, after)
    assert (made.what, made.of, made.name, made.after) == (
        "prompt",
        "chatbot vanilla",
        "chatbots/generation",
        "0",
    )


def test_older_folders_that_name_no_prompts_tell_versions(demo_replay: RunFolder) -> None:
    def forget(value: dict[str, Any]) -> None:
        del value["sources"]
        value["made_by"]["chatbots"]["vanilla"] = "0"

    assert [
        change[:2] for change in told(edit(lambda value: None)(demo_replay), edit(forget)(demo_replay))
    ] == [("version", "chatbot vanilla")]


def test_without_experiment_json_the_journals_say_what_they_know() -> None:
    made = describe_setup(None, ["s"], {"d": "1"})
    assert (made.scenario, made.detectors["d"].version) == ("s", "1")
