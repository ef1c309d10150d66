"""`hallulab report` on runs that people labelled, and with error rates of planted errors."""

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
from tests.builders import conversation, scored, unscored
from tests.kit.run_folders import write_run
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
    assert [(row["hpt_1"], row["corrected_hpt_1"], row["source"]) for row in cells] == [
        ("0.5", "0.5", "annotations"),
        ("0.0", "0.5", "annotations"),
    ]
    assert [(row["a"], row["b"], row["difference"]) for row in report["corrected_comparisons"]] == [
        ("a", "b", 0)
    ]
    assert '<section id="corrected">' in run.page.read_text()
    assert Run(run.path).report().corrected[1].corrected_hpt_1 == 0.5


def test_personas_are_planned_for_the_margin_that_is_given(hallulab: CommandLine, tmp_path: Path) -> None:
    chats = [conversation(f"{bot}{n}", ["one"], bot, f"p{n}") for bot in "ab" for n in range(6)]
    flagged = {chat.id for chat in chats[:3]}
    run = write_run(
        tmp_path / "run", chats, [scored(one.id, 0, [(0, 3)] if one.id in flagged else []) for one in chats]
    )
    needed = []
    for given in ([], ["--margin", "0.1"]):
        ended = hallulab("report", run.path, *given)
        [found] = json.loads(run.report.read_text())["findings"]
        needed.append((found["margin"], found["personas_needed"]))
        needs = f"differ by {found['margin']:g} per turn, needs about {found['personas_needed']:,}"
        assert needs in " ".join(ended.out.split())
    assert needed == [(0.2, 128), (0.1, 505)]


@pytest.mark.parametrize("margin", ["0", "-0.1", "nan", "inf", "1e-9"])
def test_no_personas_are_planned_for_a_difference_that_nobody_counts(
    hallulab: CommandLine, run: RunFolder, margin: str
) -> None:
    ended = hallulab("report", run.path, f"--margin={margin}")
    shown = f"{float(margin):g}"
    assert ended.code == 2
    assert ended.err == f"error: --margin {shown}: give a difference in HPT from 0.001 to 10.\n"
    assert not run.report.exists()


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
    code, error = hallulab.code_and_error("report", run.path, "--annotations", tmp_path / "none.jsonl")
    assert (code, "none.jsonl" in error) == (2, True)


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
    assert "Not corrected (e): no turn was scored with places." in shown


ASHA, BEN = "person:asha", "person:ben"


@pytest.fixture
def labelled(tmp_path: Path) -> RunFolder:
    """Eight conversations of a turn, all flagged. Asha finds the flag right in the first six, Ben in five."""
    chats = [conversation(f"c{n}", ["It is Rs 500."], persona=f"p{n}") for n in range(8)]
    folder = write_run(tmp_path / "run", chats, [scored(chat.id, 0, [(6, 12)]) for chat in chats])
    add(folder, *(label(n, ASHA, *([FEE] if n < 6 else [])) for n in range(8)))
    add(folder, *(label(n, BEN, *([FEE] if n < 5 else [])) for n in range(8)))
    return folder


def label(number: int, annotator: str, *spans: dict[str, Any], **more: Any) -> dict[str, Any]:
    about = {"conversation": f"c{number}", "turn": 0, "key": f"c{number}-0"}
    return {**about, "spans": spans, "annotator": annotator, **more}


def add(run: RunFolder, *lines: dict[str, Any]) -> None:
    with run.annotations.open("a") as file:
        file.writelines(f"{json.dumps(line)}\n" for line in lines)


def test_terminal_json_page_and_csv_have_the_agreement(hallulab: CommandLine, labelled: RunFolder) -> None:
    ended = hallulab("report", labelled.path)
    assert (ended.code, ended.err) == (0, "")
    assert "Agreement of annotators" in ended.out
    report = json.loads(labelled.report.read_text())
    [row] = report["annotators"]
    gamma = row.pop("gamma")
    assert row == {
        "annotator": ASHA,
        "other": BEN,
        "guideline": None,
        "turns": 8,
        "same": 7,
        "kappa": 0.714286,
        "places": 11,
        "no_gamma": None,
    }
    assert 0.5 < gamma < 1
    [line] = csv.DictReader((labelled.path / "report-annotators.csv").read_text().splitlines())
    assert (line["annotator"], float(line["gamma"])) == (ASHA, gamma)
    assert "Agreement of annotators" in (labelled.path / "report.html").read_text()


def test_where_there_is_no_gamma_a_reason_is_told(hallulab: CommandLine, labelled: RunFolder) -> None:
    labelled.annotations.write_text("")
    add(labelled, *(label(n, name) for n in range(3) for name in (ASHA, BEN)))
    ended = hallulab("report", labelled.path)
    assert "No gamma of asha and ben: nobody marked a place." in ended.out
    assert json.loads(labelled.report.read_text())["annotators"][0]["gamma"] is None


def test_a_run_of_one_annotator_has_no_such_table(hallulab: CommandLine, labelled: RunFolder) -> None:
    labelled.annotations.write_text("")
    add(labelled, label(0, ASHA))
    assert "Agreement of annotators" not in hallulab("report", labelled.path).out
    assert json.loads(labelled.report.read_text())["annotators"] == []


def test_what_was_settled_counts_and_is_told(hallulab: CommandLine, labelled: RunFolder) -> None:
    hallulab("report", labelled.path)
    before = json.loads(labelled.report.read_text())
    add(labelled, label(5, BEN, adjudicates=[ASHA, BEN]))
    ended = hallulab("report", labelled.path)
    after = json.loads(labelled.report.read_text())
    assert "1 turn by ben, who settled others' different labels" in " ".join(ended.out.split())
    assert after["annotators"] == before["annotators"]
    assert [one["corrected"][-1]["corrected_hpt_1"] for one in (before, after)] == [0.75, 0.625]


EACH = {
    "pairs": 10,
    "errors_flagged": 8,
    "twins_flagged": 1,
    "error_spans": 9,
    "twin_spans": 1,
    "error_sentences": 10,
    "twin_sentences": 10,
}
MEASURED = {"detector": "d", "version": "1", "all_pairs": 70, "groups": [EACH] * 7}


def test_the_command_writes_the_corrected_numbers_everywhere(hallulab: CommandLine, tmp_path: Path) -> None:
    chats = [
        conversation(f"{bot}{n}", ["one"], chatbot=bot, persona=f"p{n}") for bot in "ab" for n in range(6)
    ]
    verdicts = [scored(chat.id, 0, [(0, 3)] if chat.chatbot == "a" else []) for chat in chats]
    run = write_run(tmp_path / "run", chats, verdicts)
    measured = tmp_path / "bench.json"
    measured.write_text(json.dumps({"planted_counts": [MEASURED], "rows": []}))
    ended = hallulab("report", run.path, "--planted", measured)
    assert (ended.code, ended.err) == (0, "")
    assert "Corrected for the detectors' mistakes" in ended.out
    assert "all chatbots" in ended.out
    assert '<section id="corrected">' in run.page.read_text()
    corrected = json.loads(run.report.read_text())["corrected"]
    assert [(row["chatbot"], row["corrected_hpt_1"]) for row in corrected] == [
        ("a", 1.125),
        ("b", 0.0),
        (None, 0.5),
    ]
    cells = list(csv.DictReader(run.table.read_text().splitlines()))
    assert [(row["chatbot"], row["hpt_1"], row["corrected_hpt_1"], row["sensitivity"]) for row in cells] == [
        ("a", "1.0", "1.125", "0.8"),
        ("b", "0.0", "0.0", "0.8"),
    ]
    before = run.page.read_bytes()
    ended = hallulab("report", run.path, "--planted", run.report)
    assert (ended.code, run.page.read_bytes()) == (2, before)
    assert hallulab("report", run.path).code == 0
    without = json.loads(run.report.read_text())["corrected"]
    assert {row["not_corrected"] for row in without} == {"no annotations, and no known error rates"}
