"""`hallulab bench` on labelled lines, and with --gold on labels of a run's annotators."""

from __future__ import annotations

import csv
import json
from pathlib import Path
from typing import Any

import pytest

import hallulab
from hallulab.scenarios.errors import UsageError
from tests.scenarios.datasets.test_gold import chat, differ, note, settle, write
from tests.simulator.command_line import CodeAndError, CommandLine


@pytest.fixture
def run(tmp_path: Path) -> Path:
    """A run of which annotators call one turn clean, and another hallucinated or clean."""
    return write(tmp_path / "mine", [chat("c1")], [note("c1", 0, "k"), *differ(1)])


def bench(hallulab: CommandLine, numbers: Path, *more: str | Path) -> Any:
    ended = hallulab("bench", *more, "--detectors", "lexical", "--json", numbers, "-q")
    assert ended.code == 0, ended.err
    found = json.loads(numbers.read_text())
    for row in found["rows"]:
        for measured in ("seconds", "cold_s", "p50_ms", "p95_ms", "memory_mb"):
            del row[measured]
    return found


def test_both_forms_give_the_same(hallulab: CommandLine, run: Path, tmp_path: Path) -> None:
    found = bench(hallulab, tmp_path / "found.json", run, "--gold", "annotations")
    assert found == bench(hallulab, tmp_path / "other.json", "gold", "--data", run)
    assert found["data"]["replies"] == 2


def test_detectors_are_measured_on_what_was_settled(hallulab: CommandLine, run: Path, tmp_path: Path) -> None:
    before = bench(hallulab, tmp_path / "before.json", run, "--gold", "annotations")
    with (run / "annotations.jsonl").open("a") as file:
        file.write(json.dumps(settle(1)) + "\n")
    after = bench(hallulab, tmp_path / "after.json", run, "--gold", "annotations")
    positives = [
        {row["positives"] for row in one["rows"] if row["level"] == "response"} for one in (before, after)
    ]
    assert positives == [{1}, {0}]


def test_python_takes_the_same_option(run: Path) -> None:
    assert len(hallulab.bench(str(run), ["lexical"], gold="annotations").rows) > 0
    with pytest.raises(UsageError, match=r"^--gold other: give one of: annotations\.$"):
        hallulab.bench(str(run), ["lexical"], gold="other")  # type: ignore[arg-type]


def test_it_is_in_the_help(hallulab: CommandLine) -> None:
    assert "--gold" in hallulab("bench", "--help").out


@pytest.mark.parametrize(
    ("given", "said"),
    [
        (
            ("gold", "--gold", "annotations"),
            "--gold annotations: gold is a data set's name. Give a run folder",
        ),
        (("none", "--gold", "annotations"), "--gold annotations: none is no folder. Give a run folder."),
        (
            ("bare", "--gold", "annotations"),
            "--gold annotations: bare has no annotations.jsonl. Label turns first",
        ),
        (
            ("mine", "--gold", "annotations", "--data", "."),
            "--data .: with --gold annotations, the run folder holds",
        ),
        (("mine", "--gold", "labels"), "'labels' is not"),
        (("mine",), "mine: this is an annotated run. Give --gold annotations to measure on it."),
        (("mine", "--gold", "annotations", "--source", "x"), "--source x: gold has no parts. Leave it out."),
    ],
)
def test_what_is_no_annotated_run_is_refused(
    code_and_error: CodeAndError,
    run: Path,
    monkeypatch: pytest.MonkeyPatch,
    given: tuple[str, ...],
    said: str,
) -> None:
    (run.parent / "bare").mkdir()
    monkeypatch.chdir(run.parent)
    code, error = code_and_error("bench", *given, "--detectors", "lexical")
    assert code == 2
    assert said in error


@pytest.fixture
def data(tmp_path: Path) -> Path:
    """A clean reply, and a wrong one."""
    file = tmp_path / "data.jsonl"
    file.write_text(
        '{"reply": "Chalk came first.", "passages": ["Chalk came first."], "label": false}\n'
        '{"reply": "Crayons came first.", "passages": ["Chalk came first."], "label": true}\n'
    )
    return file


def test_detectors_and_their_options_are_taken_from_the_file(
    hallulab: CommandLine, data: Path, tmp_path: Path
) -> None:
    config, out = tmp_path / "experiment.yaml", tmp_path / "rows.json"
    config.write_text("detectors: [{name: strict, kind: lexical, options: {threshold: 0.9}}]\n")
    assert hallulab("bench", data, "-c", config, "--json", out).code == 0
    rows = json.loads(out.read_text())["rows"]
    assert [(row["detector"], row["threshold"], row["recall"]) for row in rows] == [
        ("flag-all", None, 1.0),
        ("majority", None, 0.0),
        ("lexical", 0.25, 1.0),
        ("strict", 0.9, 0.0),
    ]


def test_the_options_of_a_detector_are_swept(hallulab: CommandLine, data: Path, tmp_path: Path) -> None:
    sweep, out = tmp_path / "sweep.yaml", tmp_path / "found.json"
    page = tmp_path / "found.html"
    sweep.write_text("detector: lexical\ngrid: {threshold: [0.2, 0.9]}\nrepeats: 2\n")
    assert hallulab("bench", data, "--sweep", sweep, "--json", out, "--html", page).code == 0
    rows = json.loads(out.read_text())["sweep"]["rows"]
    assert [(row["config"], row["f1"], row["f1_sd"]) for row in rows] == [
        ({"threshold": 0.2}, 1.0, 0.0),
        ({"threshold": 0.9}, 0.0, 0.0),
    ]
    assert "Content-Security-Policy" in page.read_text()
    ended = hallulab("bench", data, "--sweep", sweep, "--detectors", "lexical")
    assert (ended.code, ended.err) == (
        2,
        "error: --detectors and --sweep exclude each other: the sweep file names its detector.\n",
    )


def test_rows_of_all_levels_are_written_as_csv(hallulab: CommandLine, data: Path, tmp_path: Path) -> None:
    out = tmp_path / "found.csv"
    assert hallulab("bench", data, "--csv", out).code == 0
    rows = list(csv.DictReader(out.read_text().splitlines()))
    assert [(row["detector"], row["level"], row["auroc"], row["iou"]) for row in rows] == [
        ("flag-all", "response", "0.5", ""),
        ("majority", "response", "0.5", ""),
        ("lexical", "response", "1.0", ""),
    ]


def test_there_is_nothing_to_train(hallulab: CommandLine, data: Path) -> None:
    ended = hallulab("bench", data, "--train", data)
    assert ended.code == 2
    assert ended.err == (
        f"error: --train {data}: no detector here learns. Leave --train out, or name one that does.\n"
    )
