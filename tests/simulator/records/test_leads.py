"""A text of an experiment leads where its field declares, whatever it looks like: strangers name no path."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any, get_args, get_origin

import pytest
import yaml
from pydantic import BaseModel

from hallulab.chatbots.guarded.policy import DetectorPart, Part
from hallulab.chatbots.registry import CHATBOTS
from hallulab.detectors.registry import DETECTORS
from hallulab.scenarios.components import LeadsTo
from hallulab.simulator.records.experiment import Component, Experiment
from hallulab.simulator.records.leads import list_component_leads, list_leads

LONG = "/".join(["d" * 200, "e" * 200])
"""A path of more characters than a name may have."""

FOLDERS = ["weights", "org/name", LONG, "weights\u200b", "we\nights", " weights", "\u2068x", "wéights", "-c"]
"""Paths that are there, in the working directory."""

OTHER_PATHS = [
    *("~", "~/weights", "~root", "./weights", "../weights", ".", "..", "a/..", "a/b/c", "/", "/etc", "//etc"),
    *("file:///etc", "file://weights", "\\\\host\\share", "C:\\weights", "//host/share", "s3://b/c", "a\\b"),
    *("x" * 300, "/" + "x" * 300, "a/b\n", "\u200b/etc", "", " "),
]
"""Texts that are no names."""

PLACES: list[tuple[str, str]] = [
    ("chatbots", "{kind: guarded, options: {policy: VALUE}}"),
    ("chatbots", "{kind: guarded, options: {detector: {kind: combined, options: {model: VALUE}}}}"),
    ("chatbots", "{kind: guarded, options: {detector: {kind: hhem, options: {weights: VALUE}}}}"),
    ("detectors", "{kind: combined, options: {model: VALUE}}"),
    ("detectors", "{kind: evidence-chain-lr, options: {model: VALUE}}"),
    ("detectors", "{kind: evidence-chain-bm25, options: {model: VALUE}}"),
    ("detectors", "{kind: logic-graph, options: {embedding_model: VALUE}}"),
    ("detectors", "{kind: logic-graph, options: {hhem_model: VALUE}}"),
    ("detectors", "{kind: logic-graph, options: {reranker_model: VALUE}}"),
    ("detectors", "{kind: hhem, options: {weights: VALUE}}"),
    ("detectors", "{kind: hhem, options: {foundation: VALUE}}"),
    *(
        ("detectors", f"{{kind: {peer}, options: {{weights: VALUE}}}}")
        for peer in ("lettucedetect", "minicheck", "factcg", "refchecker")
    ),
]
"""Options that lead to files: the field that they stand in, and the component, as YAML."""


def fill(template: str, value: str) -> Component:
    """The component with that value."""

    def put(inner: Any) -> Any:
        if isinstance(inner, dict):
            return {key: put(part) for key, part in inner.items()}
        return value if inner == "VALUE" else inner

    return Component.model_validate({"name": "x", **put(yaml.safe_load(template))})


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The working directory, in which the folders are."""
    monkeypatch.chdir(tmp_path)
    for name in FOLDERS:
        Path(name).mkdir(parents=True)
    return tmp_path


@pytest.mark.parametrize("value", [*FOLDERS, *OTHER_PATHS, "{here}/weights", "{here}/weights\u200b"])
def test_no_text_passes_for_a_name_that_is_none(here: Path, value: str) -> None:
    text = value.replace("{here}", str(here))
    models = {"embedding_model": text, "model": text, "models": {"big": {"model": text}}}
    leads = list_leads(Experiment.model_validate(models))
    assert [(lead.field, lead.value, lead.is_harmless) for lead in leads] == [
        ("model", text, False),
        ("models", text, False),
        ("embedding_model", text, False),
    ]
    for field, template in PLACES:
        if (not text and "weights" in template) or (not text and "foundation" in template):
            continue  # they may not be empty
        [lead] = list_component_leads(field, fill(template, text))
        assert (lead.value, lead.is_harmless) == (text, False), template


@pytest.mark.parametrize("name", ["qwen2.5-coder-1.5b", "m", "KRLabsOrg/lettucedect-base-modernbert-en-v1"])
def test_a_name_is_one_if_nothing_here_has_it(here: Path, name: str) -> None:
    leads = list_leads(Experiment.model_validate({"embedding_model": name, "model": name}))
    assert all(lead.is_harmless for lead in leads)


def test_a_name_of_the_catalogue_is_one_although_a_folder_has_it(here: Path) -> None:
    """The catalogue is asked first."""
    for name in ("qwen2.5-coder-1.5b", "all-minilm-l6-v2"):
        Path(name).mkdir()
    [served, vectors] = list_leads(Experiment(model="qwen2.5-coder-1.5b", embedding_model="all-minilm-l6-v2"))
    assert (served.is_harmless, vectors.is_harmless) == (True, True)
    [mixed_up] = list_leads(Experiment(model="all-minilm-l6-v2"))
    assert not mixed_up.is_harmless


def test_a_models_name_at_an_endpoint_leads_nowhere() -> None:
    experiment = Experiment.model_validate(
        {
            "model": "/etc",
            "base_url": "http://127.0.0.1:9/v1",
            "models": {"a": {"model": "/etc"}, "b": {"model": "/etc", "base_url": "http://127.0.0.1:8/v1"}},
        }
    )
    assert {lead.target for lead in list_leads(experiment)} == {"address"}


@pytest.mark.parametrize("kind", ["callable", "autogen"])
def test_code_is_code_also_where_it_is_guarded(kind: str) -> None:
    for options in ({"kind": kind}, {"kind": "guarded", "options": {"chatbot": kind}}):
        [lead] = list_component_leads("chatbots", Component.model_validate({"name": "x", **options}))
        assert (lead.target, lead.is_harmless) == ("code", False)


def test_texts_that_lead_nowhere_are_no_leads() -> None:
    """They were taken for paths, and for code."""
    options = {"system": "/etc is no callable.", "model": "../x", "base_url": "http://127.0.0.1:9/v1"}
    bot = Component(name="x", kind="endpoint", options=options)
    assert [lead.target for lead in list_component_leads("chatbots", bot)] == ["address"]


def list_texts(schema: type[BaseModel], seen: set[type[BaseModel]]) -> Iterator[str]:
    """The fields of a schema, and of those in it, that hold free texts and declare nothing."""
    if schema in seen:
        return
    seen.add(schema)
    for name, field in schema.model_fields.items():
        parts = list(unfold(field.annotation))
        marked = any(isinstance(mark, LeadsTo) for mark in (*field.metadata, *parts))
        if not marked and any(part in (str, Any) for part in parts):
            yield f"{schema.__name__}.{name}"
        for part in parts:
            if isinstance(part, type) and issubclass(part, BaseModel):
                yield from list_texts(part, seen)


def unfold(annotation: Any) -> Iterator[Any]:
    """A type, the types in it, and what is said about them; no values of literals."""
    yield annotation
    if str(get_origin(annotation)) != "typing.Literal":
        for part in get_args(annotation):
            yield from unfold(part)


def test_every_text_declares_where_it_leads_or_is_known_to_lead_nowhere() -> None:
    """A new one stands here, or has a `LeadsTo`: plain texts, and names of what the experiment has."""
    schemas = [Experiment, *(made.OPTIONS for made in CHATBOTS.values())]
    schemas += [made.OPTIONS for made in DETECTORS.values()]  # type: ignore[attr-defined] # they are classes
    seen: set[type[BaseModel]] = {Component, Part, DetectorPart}  # their options have schemas of their own
    assert sorted(text for schema in schemas for text in list_texts(schema, seen)) == [
        "EndpointOptions.extra",
        "EndpointOptions.model",
        "EndpointOptions.query",
        "EndpointOptions.system",
        "Experiment.extra",
        "Experiment.language",
        "Experiment.manners",
        "Experiment.models",
        "Experiment.personas",
        "Experiment.prices",
        "Experiment.query",
        "Experiment.roles",
        "FactCheckerOptions.verifier",
        "HttpOptions.body",
        "HttpOptions.event",
        "HttpOptions.job",
        "HttpOptions.passages",
        "HttpOptions.query",
        "HttpOptions.reply",
        "HttpOptions.waiting",
        "MetaRagOptions.decomposer",
        "MetaRagOptions.identity_thresholds",
        "MetaRagOptions.mutator",
        "MetaRagOptions.verifiers",
        "ModelSettings.extra",
        "ModelSettings.query",
        "SessionHeader.header",
        "UserSettings.models",
    ]
