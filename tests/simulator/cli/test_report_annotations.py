"""`hallulab report` on a run of which people looked at some turns."""

from __future__ import annotations

import csv
import json
from io import StringIO
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from hallulab import Run
from hallulab.simulator.records.folder import RunFolder
from hallulab.simulator.report.document import build_summary
from hallulab.simulator.report.write import write_reports
from hallulab.simulator.show.terminal import print_document
from tests.builders import unscored
from tests.simulator.cli.two_bots import write_two_bots
from tests.simulator.command_line import CommandLine

FEE = {"quote": "Rs 500", "severity": 4}


@pytest.fixture
def run(tmp_path: Path) -> RunFolder:
    return write_two_bots(tmp_path / "run", "It is Rs 500.", "Rs 500")


def note(conversation: str, turn: int, *spans: dict[str, Any]) -> str:
    line = {"conversation": conversation, "turn": turn, "key": f"{conversation}-{turn}", "spans": spans}
    return json.dumps(line) + "\n"


NOTES = "".join(
    note(f"{bot}{n}", turn, *([FEE] if turn == 0 else []))
    for bot in "ab"
    for n in range(6)
    for turn in range(2)
)
"""Of six conversations of each chatbot both turns: the first has an error, the second was looked at, too."""


def test_annotations_of_the_run_folder_correct_the_numbers_everywhere(
    hallulab: CommandLine, run: RunFolder
) -> None:
    run.annotations.write_text(NOTES)
    ended = hallulab("report", run.path)
    assert (ended.code, ended.err) == (0, "")
    assert "annotations" in ended.out
    assert "By d, corrected: no clear winner" in ended.out
    report = json.loads(run.report.read_text())
    assert [
        (row["chatbot"], row["source"], row["annotated"], row["hpt_1"], row["corrected_hpt_1"])
        for row in report["corrected"]
    ] == [
        ("a", "annotations", 12, 0.5, 0.5),
        ("b", "annotations", 12, 0.0, 0.5),
        (None, "annotations", 24, 0.25, 0.5),
    ]
    by_depth = [
        (row["chatbot"], row["depth"], row["corrected_hpt_1"]) for row in report["corrected_by_depth"]
    ]
    assert by_depth == [("a", 0, 1), ("b", 0, 1), (None, 0, 1), ("a", 1, 0), ("b", 1, 0), (None, 1, 0)]
    cells = list(csv.DictReader(run.table.read_text().splitlines()))
    assert [(row["hpt_1"], row["corrected_hpt_1"], row["source"], row["best"]) for row in cells] == [
        ("0.5", "0.5", "annotations", cells[0]["best"]),
        ("0.0", "0.5", "annotations", cells[1]["best"]),
    ]
    assert float(cells[0]["best"]) + float(cells[1]["best"]) == pytest.approx(1)
    assert '<section id="corrected">' in run.page.read_text()
    assert Run(run.path).report().corrected[1].corrected_hpt_1 == 0.5


def test_another_file_is_read_and_the_folder_s_own_is_left_as_it_is(
    hallulab: CommandLine, run: RunFolder, tmp_path: Path
) -> None:
    run.annotations.write_text("not read")
    elsewhere = tmp_path / "notes.jsonl"
    elsewhere.write_text(NOTES)
    assert hallulab("report", run.path, "--annotations", elsewhere).code == 0
    assert json.loads(run.report.read_text())["corrected"][0]["annotated"] == 12
    assert run.annotations.read_text() == "not read"


def test_a_turn_without_a_line_was_not_looked_at(hallulab: CommandLine, run: RunFolder) -> None:
    run.annotations.write_text("".join(note(f"b{n}", 0, FEE) for n in range(6)))
    assert hallulab("report", run.path).code == 0
    a, b, _ = json.loads(run.report.read_text())["corrected"]
    assert (a["annotated"], a["source"], a["corrected_hpt_1"]) == (0, None, None)
    assert (b["annotated"], b["corrected_hpt_1"]) == (6, 1.0)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (note("a0", 2), "line 1: conversations.jsonl has no turn 2 of conversation a0."),
        (note("zz", 0), "line 1: conversations.jsonl has no turn 0 of conversation zz."),
        (note("a0", 0) * 2, "line 2: turn 0 of conversation a0 is annotated in line 1, too."),
        (note("a0", 1, FEE), "line 1: spans: the quotation 'Rs 500' does not stand in the reply."),
        ('{"conversation": "a0"}', "line 1"),
    ],
)
def test_wrong_annotations_are_refused_and_nothing_is_written(
    hallulab: CommandLine, run: RunFolder, text: str, said: str
) -> None:
    run.annotations.write_text(text)
    ended = hallulab("report", run.path)
    assert (ended.code, run.report.exists()) == (2, False)
    assert said in " ".join(ended.err.split())


def test_a_missing_file_is_named(hallulab: CommandLine, run: RunFolder, tmp_path: Path) -> None:
    ended = hallulab("report", run.path, "--annotations", tmp_path / "none.jsonl")
    assert ended.code == 2
    assert "none.jsonl" in ended.err


def test_an_export_does_not_overwrite_annotations(hallulab: CommandLine, run: RunFolder) -> None:
    run.annotations.write_text(NOTES)
    assert hallulab("export", run.path, "--out", run.annotations).code == 2
    assert run.annotations.read_text() == NOTES


def test_a_narrow_terminal_shows_detectors_with_and_without_a_scored_turn(run: RunFolder) -> None:
    run.annotations.write_text(NOTES)
    with run.verdicts.open("a") as journal:
        journal.write(unscored("a0", 0, detector="e").model_dump_json() + "\n")
    console = Console(width=80, record=True, file=StringIO())
    print_document(build_summary(write_reports(run)), console)
    shown = console.export_text()
    assert "Not corrected (e): no turn was scored." in shown
