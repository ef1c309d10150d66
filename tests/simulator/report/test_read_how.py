"""How the report says how models were read."""

from __future__ import annotations

from pathlib import Path

import pytest

from agents.models.abilities import ReadHow
from scenarios.errors import UsageError
from simulator.report.document import build_report
from simulator.report.terminal import reading_lines
from simulator.runs.folder import RunFolder
from simulator.runs.saved_experiment import saved_read_how


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
    assert reading_lines(report["read_how"]) == [line]


def test_a_report_of_an_older_folder_says_nothing_of_it(tmp_path: Path) -> None:
    assert saved_read_how(RunFolder(tmp_path), {}) == ()
    assert build_report([], [], chatbots=[], detectors=[], flaws={})["read_how"] == []


def test_what_is_damaged_is_one_sentence(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"experiment\.json: in `read_how`, .*Restore it or use --fresh\."):
        saved_read_how(RunFolder(tmp_path), {"read_how": [{"model": "m", "seed": "sown"}]})
