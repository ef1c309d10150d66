from __future__ import annotations

import inspect
from importlib.metadata import EntryPoint
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from hallulab.agents.models.prompt import Prompt, load_prompt_at
from hallulab.chatbots import registry
from hallulab.chatbots.registry import (
    CHATBOTS,
    collect_instructions,
    compute_chatbot_version,
    find_chatbot,
    is_searching,
    list_chatbot_names,
    make_chatbot,
)
from hallulab.scenarios import components as plugins
from hallulab.scenarios.errors import UsageError
from tests.chatbots.stage import stage
from tests.kit.refusals import refusal

TEAM = "tests.chatbots.pool_team:team"
OPTIONS: dict[str, dict[str, Any]] = {
    "callable": {"target": "math:sqrt"},
    "autogen": {"target": TEAM},
    "http": {"url": "http://127.0.0.1:9/chat", "body": {"message": "{{ message }}"}},
}


@pytest.fixture
def offered(monkeypatch: pytest.MonkeyPatch) -> list[EntryPoint]:
    points: list[EntryPoint] = []
    monkeypatch.setattr(plugins, "entry_points", lambda group: points)
    return points


@pytest.mark.parametrize("kind", sorted(CHATBOTS))
def test_each_is_registered_under_its_own_name(kind: str) -> None:
    context, _, _ = stage(options=OPTIONS.get(kind, {}))
    bot = make_chatbot(kind, context)
    assert vars(type(bot))["KIND"] == kind


@pytest.mark.parametrize("kind", sorted(CHATBOTS))
def test_the_line_that_the_list_prints_is_one_short_sentence(kind: str) -> None:
    line = (inspect.getdoc(CHATBOTS[kind]) or "").partition("\n")[0]
    assert line.endswith(".")
    assert len(line) <= 100


def test_an_unknown_name_lists_what_there_is(offered: list[EntryPoint]) -> None:
    offered.append(EntryPoint("theirs", "math:sqrt", registry.GROUP))
    assert refusal(find_chatbot, "vanila") == (
        "there is no chatbot 'vanila' (did you mean `vanilla`?); there are: vanilla, "
        "prompt-engineered, editor, fact-checker, agent, "
        "endpoint, callable, autogen, http, guarded, theirs."
    )


def test_an_entry_point_is_a_chatbot(offered: list[EntryPoint]) -> None:
    offered.append(EntryPoint("theirs", "math:sqrt", registry.GROUP))
    import math

    assert find_chatbot("theirs") is math.sqrt  # type: ignore[comparison-overlap]
    assert list_chatbot_names()[-1] == "theirs"
    assert compute_chatbot_version("theirs", {}) != compute_chatbot_version("theirs", {"a": 1})


def test_ours_cannot_be_taken(offered: list[EntryPoint]) -> None:
    offered.append(EntryPoint("vanilla", "math:sqrt", registry.GROUP))
    assert find_chatbot("vanilla") is CHATBOTS["vanilla"]


@pytest.mark.parametrize(("module", "error"), [("torn_plugin", "SyntaxError"), ("no_such_module", "")])
def test_an_entry_point_whose_module_fails_is_named(
    offered: list[EntryPoint], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, module: str, error: str
) -> None:
    (tmp_path / "torn_plugin.py").write_text("def make(:", encoding="utf-8")
    monkeypatch.syspath_prepend(tmp_path)
    offered.append(EntryPoint("theirs", f"{module}:make", registry.GROUP))
    told = rf"chatbot 'theirs': cannot load its entry point {module}:make.*{error}"
    with pytest.raises(UsageError, match=told):
        find_chatbot("theirs")


def test_a_constructor_that_raises_is_one_sentence(offered: list[EntryPoint]) -> None:
    offered.append(EntryPoint("theirs", "math:sqrt", registry.GROUP))
    context, _, _ = stage()
    with pytest.raises(
        UsageError, match=r"^chatbot 'theirs': its constructor raised TypeError: must be real"
    ):
        make_chatbot("theirs", context)


def test_what_does_not_reply_is_no_chatbot(offered: list[EntryPoint]) -> None:
    offered.append(EntryPoint("theirs", "builtins:repr", registry.GROUP))
    context, _, _ = stage()
    said = "chatbot 'theirs': its constructor gave a str, which has no `reply`."
    assert refusal(make_chatbot, "theirs", context) == said


def test_versions_differ_by_kind_and_option_and_are_equal_for_defaults() -> None:
    assert compute_chatbot_version("vanilla", {}) != compute_chatbot_version("prompt-engineered", {})
    assert compute_chatbot_version("vanilla", {}) != compute_chatbot_version("vanilla", {"temperature": 0.7})
    assert compute_chatbot_version("vanilla", {}) == compute_chatbot_version("vanilla", {"temperature": 0.0})


def test_a_changed_prompt_is_a_new_version_of_those_who_use_it(monkeypatch: pytest.MonkeyPatch) -> None:
    before = {kind: compute_chatbot_version(kind, OPTIONS.get(kind, {})) for kind in CHATBOTS}
    load = load_prompt_at

    def changed(place: str) -> Prompt:
        prompt = load(place)
        if prompt.name != "careful_generation":
            return prompt
        return Prompt(prompt.name, prompt.template + " please")

    monkeypatch.setattr(registry, "load_prompt_at", changed)
    after = {kind: compute_chatbot_version(kind, OPTIONS.get(kind, {})) for kind in CHATBOTS}
    changed_kinds = {kind for kind in CHATBOTS if before[kind] != after[kind]}
    assert changed_kinds == {"prompt-engineered", "editor", "fact-checker"}


@pytest.mark.parametrize(
    ("kind", "options", "message"),
    [
        (
            "vanilla",
            {"heat": 1},
            "chatbot vanilla: there is no option `heat`; there are: temperature, max_tokens, strategy, cite.",
        ),
        ("vanilla", {"temperature": -1}, "chatbot vanilla: option `temperature`: input should be greater"),
        ("callable", {}, "chatbot callable: the option `target` is required."),
        (
            "callable",
            {"target": "my_bot"},
            "chatbot callable: option `target`: must be `module:attribute`, such as `my_bot:answer`.",
        ),
        (
            "endpoint",
            {"base_url": "http://127.0.0.1:9/v1"},
            "chatbot endpoint: with `base_url`, the option `model`",
        ),
        (
            "endpoint",
            {"base_url": "http://bob:s3cret@host/v1", "model": "m"},
            "chatbot endpoint: option `base_url`: a URL with `@` or `?` may hold a password",
        ),
        ("endpoint", {"api_key_env": "KEY"}, "chatbot endpoint: `api_key_env` belongs to a `base_url`"),
    ],
)
def test_a_wrong_option_is_one_sentence(kind: str, options: dict[str, Any], message: str) -> None:
    assert refusal(compute_chatbot_version, kind, options).startswith(message)


def test_a_new_release_of_an_entry_point_is_a_new_version(monkeypatch: pytest.MonkeyPatch) -> None:
    versions = []
    for release in ("1.0", "1.1"):
        point = SimpleNamespace(
            name="theirs", value="math:sqrt", dist=SimpleNamespace(version=release), load=lambda: None
        )
        monkeypatch.setattr(plugins, "entry_points", lambda group, point=point: [point])
        versions.append(compute_chatbot_version("theirs", {}))
    assert versions[0] != versions[1]


def test_own_bots_do_not_search_and_all_others_may() -> None:
    searching = [kind for kind in CHATBOTS if is_searching(kind)]
    assert searching == ["vanilla", "prompt-engineered", "editor", "fact-checker", "agent", "guarded"]


def test_our_chatbots_have_their_prompts_without_what_is_filled_in() -> None:
    texts = collect_instructions("vanilla", {})
    assert texts is not None
    assert "Documents found for the user's last message:" in " ".join(texts)
    assert "politely decline other topics" in " ".join(texts)
    assert not [text for text in texts if "{{" in text or "\x00" in text]


def test_an_endpoint_has_the_prompt_that_it_is_sent() -> None:
    assert collect_instructions("endpoint", {"system": "Be brief."}) == ("Be brief.",)
    assert collect_instructions("endpoint", {}) is None


def test_those_of_other_bots_are_not_known() -> None:
    assert collect_instructions("callable", {"target": "m:f"}) is None
    assert collect_instructions("somebody-elses", {}) is None


def test_a_guarded_chatbot_has_those_of_the_one_that_it_wraps() -> None:
    assert collect_instructions("guarded", {"chatbot": "editor"}) == collect_instructions("editor", {})
    assert (
        collect_instructions("guarded", {"chatbot": {"kind": "callable", "options": {"target": "m:f"}}})
        is None
    )
