"""Values of headers are sent only to whom the user has named, as keys are."""

from __future__ import annotations

from typing import Any

import pytest

from hallulab.simulator.records.experiment import Experiment
from hallulab.simulator.records.leads import list_leads
from hallulab.simulator.records.recipients import Recipient, collect_endpoints, list_recipients, list_unnamed

HERE, THERE = "http://127.0.0.1:9/v1", "https://bots.example/v1"


def bot(**options: Any) -> dict[str, Any]:
    return {"name": "mine", "kind": "endpoint", "options": {"base_url": THERE, "model": "b", **options}}


def experiment(**fields: Any) -> Experiment:
    return Experiment.model_validate({"chatbots": ["vanilla"], "model": "m", "base_url": HERE, **fields})


@pytest.mark.parametrize(
    ("fields", "recipients"),
    [
        ({"headers": {"X-Pass": "${PASS_A}"}}, {(HERE, "PASS_A")}),
        ({"headers": {"X-Pass": "plain"}}, {(HERE, None)}),
        ({"headers": {"X-Pass": "${PASS_A}"}, "api_key_env": "KEY_A"}, {(HERE, "KEY_A"), (HERE, "PASS_A")}),
        (
            {"chatbots": [bot(headers={"Authorization": "Bearer ${PASS_A}"})]},
            {(HERE, None), (THERE, "PASS_A")},
        ),
        (
            {
                "chatbots": [
                    {"kind": "guarded", "name": "g", "options": {"chatbot": bot(headers={"X": "${PASS_A}"})}}
                ]
            },
            {(HERE, None), (THERE, "PASS_A")},
        ),
        ({"headers": {"X-Pass": "${PASS_A}"}, "models": {"big": {"model": "b"}}}, {(HERE, "PASS_A")}),
        (
            {"headers": {"X-Pass": "${PASS_A}"}, "models": {"big": {"model": "b", "base_url": THERE}}},
            {(HERE, "PASS_A"), (THERE, "OPENAI_API_KEY")},
        ),
        (
            {"models": {"big": {"model": "b", "base_url": THERE, "api_key_env": "none"}}},
            {(HERE, None), (THERE, None)},
        ),
    ],
)
def test_who_gets_which_variable(fields: dict[str, Any], recipients: set[tuple[str, str | None]]) -> None:
    found = list_recipients(experiment(**fields))
    assert {(one.address, one.variable) for one in found} == recipients


def test_a_strangers_header_is_not_sent_even_to_this_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PASS_A", "a secret text")
    asked = list_recipients(experiment(headers={"X-Pass": "${PASS_A}"}))
    assert list_unnamed(asked, list_recipients(experiment())) == (Recipient(HERE, "PASS_A"),)
    assert list_unnamed(asked, asked) == ()


def test_models_at_the_experiments_endpoint_have_its_headers_and_query() -> None:
    found = collect_endpoints(
        experiment(
            headers={"X-A": "1"},
            query={"v": "1"},
            extra={"a": 1},
            thoughts=9,
            models={"big": {"model": "b", "headers": {"X-B": "2"}}},
        )
    )
    settings = found["big"].settings
    assert (settings.headers, settings.query) == ({"X-A": "1", "X-B": "2"}, {"v": "1"})
    assert (settings.extra, settings.thoughts) == ({}, 0)


def test_headers_are_leads() -> None:
    assert [lead.target for lead in list_leads(experiment(headers={"X-A": "1"}))] == ["address", "header"]
