"""How the report says how models were read."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from hallulab.agents.models.abilities import ReadHow
from hallulab.agents.models.replicas import Answered
from hallulab.scenarios.errors import UsageError
from hallulab.simulator.report.build import describe_models
from tests.simulator.cli.test_commands import saved_run
from tests.simulator.counted import build_report


@pytest.mark.parametrize(
    ("read_how", "line"),
    [
        (
            ReadHow(model="m", asked=True, decision_samples=5),
            "m was read by: log-probabilities, JSON schema, seed kept.",
        ),
        (
            ReadHow(model="m", asked=True, log_probabilities=False, seed="refused"),
            "m was read by: printed word, JSON schema, seed refused.",
        ),
        (
            ReadHow(model="m", asked=True, log_probabilities=False, json_schema=False, decision_samples=5),
            "m was read by: share of 5 printed words, JSON asked for in the prompt, seed kept.",
        ),
        (
            ReadHow(model="m"),
            "m was read by: log-probabilities, JSON schema, seed kept (assumed, the endpoint did not say).",
        ),
    ],
)
def test_a_line_a_model(read_how: ReadHow, line: str) -> None:
    report = build_report([], [], chatbots=[], detectors=[], flaws={}, read_how=[read_how])
    assert describe_models(report) == [line]


def test_a_line_an_endpoint() -> None:
    done = [
        Answered(base_url="http://a/v1", answered=1),
        Answered(base_url="http://b/v1", answered=20, failed=2),
    ]
    report = build_report([], [], chatbots=[], detectors=[], flaws={}, endpoints=done)
    assert describe_models(report) == [
        "http://a/v1 answered 1 request.",
        "http://b/v1 answered 20 requests, and failed 2 times.",
    ]


def test_a_report_of_an_older_folder_says_nothing_of_it() -> None:
    assert build_report([], [], chatbots=[], detectors=[], flaws={}).read_how == ()


def test_what_is_damaged_is_one_sentence(tmp_path: Path) -> None:
    folder = saved_run(tmp_path)
    saved = {**json.loads(folder.experiment.read_text()), "read_how": [{"model": "m", "seed": "sown"}]}
    folder.experiment.write_text(json.dumps(saved))
    with pytest.raises(UsageError, match=r"field `read_how\.0\.seed`: .*Restore it or use --fresh\."):
        folder.read_experiment()
