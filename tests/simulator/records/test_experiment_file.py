"""The experiment file: short forms, flags over file, and one sentence for each mistake."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import pytest

from hallulab.agents.models.recording import Recording
from hallulab.agents.models.replicas import Limits
from hallulab.chatbots.registry import compute_chatbot_version
from hallulab.detectors.base.protocol import Detector
from hallulab.scenarios.errors import UsageError
from hallulab.scenarios.packs.pack_files import load_scenario
from hallulab.simulator.engine.models import open_pool
from hallulab.simulator.engine.participants import is_model_needed, make_detectors
from hallulab.simulator.engine.plan import plan
from hallulab.simulator.records.experiment import Component, Experiment
from hallulab.simulator.records.experiment_file import load_experiment
from tests.places import ROOT


def write(tmp_path: Path, text: str) -> Path:
    path = tmp_path / "experiment.yaml"
    path.write_text(text, encoding="utf-8")
    return path


def refusal(path: Path | None, **flags: object) -> str:
    with pytest.raises(UsageError) as caught:
        load_experiment(path, flags)
    return str(caught.value)


def test_a_bare_name_is_a_component_of_that_kind(tmp_path: Path) -> None:
    experiment = load_experiment(write(tmp_path, "chatbots: [vanilla]"), {})
    assert experiment.chatbots == (Component(name="vanilla", kind="vanilla"),)


def test_a_component_may_have_another_name_than_its_kind(tmp_path: Path) -> None:
    text = "detectors:\n  - {name: strict, kind: metarag, options: {tau: 0.3}}\n"
    experiment = load_experiment(write(tmp_path, text), {})
    assert experiment.detectors == (Component(name="strict", kind="metarag", options={"tau": 0.3}),)


def test_flags_win_over_the_file_and_the_file_over_defaults(tmp_path: Path) -> None:
    experiment = load_experiment(write(tmp_path, "seed: 3\nlimit: 5"), {"limit": 2, "repeats": None})
    assert (experiment.seed, experiment.limit, experiment.repeats) == (3, 2, 1)


def test_a_flag_names_components_of_the_file(tmp_path: Path) -> None:
    path = write(
        tmp_path, "detectors:\n  - {name: strict, kind: metarag, options: {tau: 0.3}}\n  - combined\n"
    )
    flags = {"detectors": ["lexical", "strict"]}
    assert load_experiment(path, flags).detectors == (
        Component(name="lexical", kind="lexical"),
        Component(name="strict", kind="metarag", options={"tau": 0.3}),
    )
    (tmp_path / "conversations.jsonl").touch()  # of a stranger's folder a flag takes no component
    assert load_experiment(path, flags).detectors[1] == Component(name="strict", kind="strict")


def test_a_catalogue_models_defaults_yield_to_file_and_flags(tmp_path: Path) -> None:
    experiment = load_experiment(None, {"model": "SmolLM2-135M"})
    assert (experiment.max_turns, experiment.reply_tokens, experiment.top_k) == (2, 40, 2)
    experiment = load_experiment(
        write(tmp_path, "max_turns: 3"), {"model": "smollm2-135m", "reply_tokens": 9}
    )
    assert (experiment.max_turns, experiment.reply_tokens) == (3, 9)
    assert load_experiment(None, {"model": "qwen2.5-coder-1.5b"}) == Experiment(model="qwen2.5-coder-1.5b")


@pytest.mark.parametrize(
    ("kind", "options", "made_with"),
    [
        ("vanilla", {}, {"max_tokens": 80}),
        ("vanilla", {"max_tokens": 5}, {"max_tokens": 5}),
        ("callable", {"target": "a:b"}, {"target": "a:b"}),
    ],
)
def test_the_limit_of_a_reply_is_for_chatbots_of_ours_without_one(
    kind: str, options: dict[str, object], made_with: dict[str, object]
) -> None:
    chatbot = Component(name="bot", kind=kind, options=options)
    assert Experiment(reply_tokens=80).options_of(chatbot) == made_with
    assert Experiment().options_of(chatbot) == options


def test_the_limit_of_a_reply_holds_for_a_wrapped_chatbot() -> None:
    limited = Experiment(reply_tokens=80)
    wrapped = {"kind": "editor", "options": {"max_tokens": 80}}
    assert limited.options_of(Component(name="g", kind="guarded", options={"chatbot": "editor"})) == {
        "chatbot": wrapped
    }
    own = {"chatbot": {"kind": "endpoint", "options": {"model": "m"}}}
    assert limited.options_of(Component(name="g", kind="guarded", options=own)) == own


def test_the_default_line_up_is_the_papers() -> None:
    experiment = load_experiment(None, {})
    assert [bot.name for bot in experiment.chatbots] == [
        "vanilla",
        "prompt-engineered",
        "editor",
        "fact-checker",
        "agent",
    ]
    assert [detector.name for detector in experiment.detectors] == ["halludetect", "metarag"]


def test_a_model_of_models_is_not_called_default(tmp_path: Path) -> None:
    path = write(tmp_path, "models: {default: {model: a}}")
    assert refusal(path) == (
        f"{path}: `default` is the experiment's own model; give that as `model`, or call the one under "
        "`models` otherwise."
    )


@pytest.mark.parametrize(
    ("text", "place"),
    [
        ("limit: yes", "limit"),
        ("seed: no", "seed"),
        ("attack: {fake_answer: yes, poison_ratio: on}", "attack.poison_ratio"),
        ("prices: {a: {input: true, output: 1}}", "prices.a.input"),
    ],
)
def test_a_truth_is_no_number(tmp_path: Path, text: str, place: str) -> None:
    path = write(tmp_path, text)
    assert refusal(path) == (
        f"{path}, line 1: {place}: must be a number, not true or false. Correct it; see docs/experiment.md."
    )


def test_a_truth_of_a_flag_is_no_number() -> None:
    assert refusal(None, limit=True) == (
        "field `limit`: must be a number, not true or false. Correct it; see docs/experiment.md."
    )


def test_a_file_that_is_no_mapping_is_refused(tmp_path: Path) -> None:
    path = write(tmp_path, "- vanilla\n")
    assert refusal(path) == (
        f"{path}, line 1: a list of `key: value` lines is expected here; see docs/experiment.md."
    )


def test_a_missing_file_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "none.yaml"
    assert refusal(path) == f"{path}: cannot be read (No such file or directory). Correct the path."


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        (
            "max_turn: 3",
            "max_turn: unknown key (did you mean `max_turns`?). "
            "Correct its spelling or remove it; see docs/experiment.md.",
        ),
        (
            "detectors: lexical",
            'detectors: must be a list, such as ["lexical"]. Correct it; see docs/experiment.md.',
        ),
        (
            "models: {big: gpt}",
            "models.big: must be keys with values, `{key: value}`, not the text 'gpt'. Correct it; see "
            "docs/experiment.md.",
        ),
        (
            "chatbots: [my bot]",
            "chatbots.0.name: may hold only letters (A to Z), digits, `.`, `_` and `-`, and begins with a "
            "letter or digit. Correct it; see docs/experiment.md.",
        ),
        (
            "limit: 0",
            "limit: input should be greater than or equal to 1. Correct it; see docs/experiment.md.",
        ),
        ("model: 7", "model: must be text, not the int 7. Put it in quotes."),
    ],
)
def test_a_mistake_in_the_file_is_named_with_its_line(tmp_path: Path, text: str, complaint: str) -> None:
    path = write(tmp_path, f"seed: 1\n{text}\n")
    assert refusal(path, repeats=2) == f"{path}, line 2: {complaint}"


def test_a_wrong_flag_is_no_mistake_in_the_file(tmp_path: Path) -> None:
    path = write(tmp_path, "limit: 3")
    assert refusal(path, limit=0) == "field `limit`: input should be greater than or equal to 1."


async def detectors_of(experiment: Experiment) -> list[Detector]:
    async with open_pool(experiment, Recording()) as pool:
        return make_detectors(experiment, pool, {})


def test_fields_of_the_file_that_do_not_go_together_are_told_with_the_file(tmp_path: Path) -> None:
    path = write(tmp_path, "min_turns: 5")
    assert refusal(path, max_turns=2) == (
        f"{path}: min_turns 5 is more than max_turns 2; lower the one or raise the other."
    )


@pytest.mark.parametrize(
    ("component", "complaint"),
    [
        (
            "{name: a, kind: lexica}",
            "there is no detector 'lexica' (did you mean `lexical`?); there are: halludetect",
        ),
        ("{name: a, kind: lexical, options: {threshold: 3}}", "detector a: option `threshold`: input should"),
    ],
)
async def test_what_is_wrong_with_a_component_names_its_line(
    tmp_path: Path, component: str, complaint: str
) -> None:
    path = write(tmp_path, f"detectors:\n  - lexical\n  - {component}\n")
    with pytest.raises(UsageError) as caught:
        await detectors_of(load_experiment(path, {"model": "m"}))
    assert str(caught.value).startswith(f"{path}, line 3: {complaint}")


async def test_a_component_that_a_flag_names_has_no_line(tmp_path: Path) -> None:
    path = write(tmp_path, "detectors: [lexical]")
    with pytest.raises(UsageError, match=r"^there is no detector 'lexica' "):
        await detectors_of(load_experiment(path, {"model": "m", "detectors": ["lexica"]}))


def test_a_wrong_chatbot_names_its_line(tmp_path: Path) -> None:
    path = write(tmp_path, "chatbots:\n  - vanilla\n  - vanila\n")
    with pytest.raises(UsageError) as caught:
        plan(load_experiment(path, {}), load_scenario("pregnancy-medication"))
    assert str(caught.value).startswith(
        f"{path}, line 3: there is no chatbot 'vanila' (did you mean `vanilla`?); there are: vanilla"
    )


@pytest.mark.parametrize(
    ("flags", "complaint"),
    [
        ({"limit": 0}, "field `limit`: input should be greater than or equal to 1."),
        ({"chatbots": []}, "field `chatbots`: is empty; give at least 1."),
        ({"personas": []}, "field `personas`: is empty; give at least 1."),
        (
            {"chatbots": ["vanilla", "vanilla"]},
            "field `chatbots`: the name 'vanilla' stands twice; give each its own `name`.",
        ),
        (
            {"personas": ["ann", "bob", "ann"]},
            "field `personas`: 'ann' stands twice; name each once, or raise `repeats`.",
        ),
        (
            {"min_turns": 5, "max_turns": 2},
            "min_turns 5 is more than max_turns 2; lower the one or raise the other.",
        ),
        ({"roles": {"user": "big"}}, "roles name the model 'big', which is not under `models`."),
    ],
)
def test_a_wrong_value_names_its_field(flags: dict[str, Any], complaint: str) -> None:
    assert refusal(None, **flags) == complaint


SECRET_URLS = ("http://bob:s3cret@host/v1", "http://bob:s3/cret@host/v1", "http://host/v1?key=s3cret")
NO_SECRETS = (
    "a URL with `@` or `?` may hold a password, and it stands in the report; put the key into an environment "
    "variable and name that in `api_key_env`, and what is no secret into `query`."
)


@pytest.mark.parametrize("url", SECRET_URLS)
def test_an_address_with_a_secret_is_refused_and_not_repeated(url: str) -> None:
    assert refusal(None, base_url=url) == f"field `base_url`: {NO_SECRETS}"
    judge = {"judge": {"model": "m", "base_url": url}}
    assert refusal(None, models=judge) == f"field `models.judge.base_url`: {NO_SECRETS}"


@pytest.mark.parametrize(
    "url",
    [
        *("localhost:8000/v1", "nonsense", "", "http://", "http:///v1", "ftp://host/v1"),
        *("http://host:80x/v1", "http://[::1/v1", "http://my host/v1"),
    ],
)
def test_an_address_has_scheme_and_host(url: str) -> None:
    assert refusal(None, base_url=url) == (
        f"field `base_url`: {url!r} is no address; give one with `http://` or `https://` and a host, such as "
        "http://localhost:8000/v1."
    )


@pytest.mark.parametrize(
    "url",
    [
        *("http://localhost:8000/v1", "HTTPS://host", "http://[::1]:8000/v1"),
        "https://models.example.org:8443/team/v1/",
    ],
)
def test_a_complete_address_is_kept_as_it_is(url: str) -> None:
    assert load_experiment(None, {"base_url": url}).base_url == url


async def test_the_documented_example_is_valid(tmp_path: Path) -> None:
    text = (ROOT / "docs" / "experiment.md").read_text(encoding="utf-8")
    experiment = load_experiment(write(tmp_path, text.partition("```yaml\n")[2].partition("```")[0]), {})
    assert [len(compute_chatbot_version(bot.kind, bot.options)) for bot in experiment.chatbots] == [16] * 3
    assert [one.name for one in await detectors_of(experiment)] == [one.name for one in experiment.detectors]


@pytest.mark.parametrize(
    ("detectors", "asked"),
    [
        (["lexical"], False),
        (["evidence-chain-bm25", "lexical"], False),
        (["evidence-chain-bm25", "metarag"], True),
    ],
)
async def test_a_model_is_served_for_detectors_that_ask_one(detectors: list[str], asked: bool) -> None:
    experiment = load_experiment(None, {"detectors": detectors})
    assert is_model_needed(await detectors_of(experiment)) is asked


def test_every_field_is_documented() -> None:
    text = (ROOT / "docs" / "experiment.md").read_text(encoding="utf-8")
    assert [name for name in Experiment.model_fields if f"`{name}`" not in text] == []


def test_many_names_take_little_time(tmp_path: Path) -> None:
    path = tmp_path / "experiment.yaml"
    path.write_text(f"chatbots: [{', '.join(f'a{number}' for number in range(60_000))}]\n")
    started = time.process_time()
    assert len(load_experiment(path, {}).chatbots) == 60_000
    assert time.process_time() - started < 30


def test_limits_are_those_of_named_endpoints(tmp_path: Path) -> None:
    limits = "endpoint_limits: {requests: 8, tokens_per_minute: 60000}\n"
    assert "give one of these" in refusal(write(tmp_path, limits))
    found = load_experiment(write(tmp_path, f"base_url: http://127.0.0.1:9/v1\n{limits}"), {}).endpoint_limits
    assert found == Limits(requests=8, tokens_per_minute=60_000)
    none = write(tmp_path, "base_url: http://127.0.0.1:9/v1\nendpoint_limits: {requests: 0}\n")
    assert "line 2" in refusal(none)


@pytest.mark.parametrize(
    ("fields", "concurrency"),
    [
        ({}, 16),
        ({"base_url": "http://127.0.0.1:8000/v1"}, 16),
        ({"base_url": "https://models.example/v1"}, "auto"),
        ({"base_urls": ["http://127.0.0.1:1/v1", "http://a:1/v1"], "api_key_env": "KEY"}, "auto"),
        ({"base_url": "https://models.example/v1", "concurrency": 4}, 4),
        ({"base_url": "https://models.example/v1", "concurrency": "4"}, 4),
        ({"concurrency": "auto"}, "auto"),
        (
            {
                "base_url": "https://models.example/v1",
                "chatbots": [{"name": "mine", "kind": "callable", "options": {"target": "bot:reply"}}],
            },
            16,
        ),
    ],
)
def test_concurrency_is_found_out_where_the_default_model_is_on_another_machine(
    fields: dict[str, Any], concurrency: int | str
) -> None:
    assert load_experiment(None, fields).concurrency == concurrency


@pytest.mark.parametrize("wrong", ["many", "0", 0, -1, 1.5])
def test_a_wrong_concurrency_is_told_in_one_sentence(wrong: Any) -> None:
    with pytest.raises(UsageError) as error:
        load_experiment(None, {"concurrency": wrong})
    assert str(error.value) == f"field `concurrency`: must be a number from 1 or `auto`, not {wrong!r}."
