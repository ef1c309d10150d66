"""`hallulab report` on a run that two annotators labelled: agreement, and what was settled."""

from __future__ import annotations

import csv
import json
from pathlib import Path
from typing import Any

import pytest

from hallulab.simulator.records.folder import RunFolder
from tests.builders import conversation, scored
from tests.simulator.command_line import CommandLine

ASHA, BEN = "person:asha", "person:ben"
FEE = {"quote": "Rs 500", "severity": 4}


@pytest.fixture
def run(tmp_path: Path) -> RunFolder:
    """Eight conversations of a turn, all flagged. Asha finds the flag right in the first six, Ben in five."""
    folder = RunFolder(tmp_path / "run")
    folder.path.mkdir()
    chats = [conversation(f"c{n}", ["It is Rs 500."], persona=f"p{n}") for n in range(8)]
    folder.conversations.write_text("".join(chat.model_dump_json() + "\n" for chat in chats))
    verdicts = [scored(chat.id, 0, [(6, 12)]) for chat in chats]
    folder.verdicts.write_text("".join(verdict.model_dump_json() + "\n" for verdict in verdicts))
    add(folder, *(note(n, ASHA, *([FEE] if n < 6 else [])) for n in range(8)))
    add(folder, *(note(n, BEN, *([FEE] if n < 5 else [])) for n in range(8)))
    return folder


def note(number: int, annotator: str, *spans: dict[str, Any], **more: Any) -> dict[str, Any]:
    about = {"conversation": f"c{number}", "turn": 0, "key": f"c{number}-0"}
    return {**about, "spans": spans, "annotator": annotator, **more}


def add(run: RunFolder, *lines: dict[str, Any]) -> None:
    with run.annotations.open("a") as file:
        file.writelines(f"{json.dumps(line)}\n" for line in lines)


def test_terminal_json_page_and_csv_have_the_agreement(hallulab: CommandLine, run: RunFolder) -> None:
    ended = hallulab("report", run.path)
    assert (ended.code, ended.err) == (0, "")
    assert "Agreement of annotators" in ended.out
    report = json.loads(run.report.read_text())
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
    [line] = csv.DictReader((run.path / "report-annotators.csv").read_text().splitlines())
    assert (line["annotator"], float(line["gamma"])) == (ASHA, gamma)
    assert "Agreement of annotators" in (run.path / "report.html").read_text()


def test_where_there_is_no_gamma_a_reason_is_told(hallulab: CommandLine, run: RunFolder) -> None:
    run.annotations.write_text("")
    add(run, *(note(n, name) for n in range(3) for name in (ASHA, BEN)))
    ended = hallulab("report", run.path)
    assert "No gamma of asha and ben: nobody marked a place." in ended.out
    assert json.loads(run.report.read_text())["annotators"][0]["gamma"] is None


def test_a_run_of_one_annotator_has_no_such_table(hallulab: CommandLine, run: RunFolder) -> None:
    run.annotations.write_text("")
    add(run, note(0, ASHA))
    assert "Agreement of annotators" not in hallulab("report", run.path).out
    assert json.loads(run.report.read_text())["annotators"] == []


def test_what_was_settled_counts_and_is_told(hallulab: CommandLine, run: RunFolder) -> None:
    hallulab("report", run.path)
    before = json.loads(run.report.read_text())
    add(run, note(5, BEN, adjudicates=[ASHA, BEN]))
    ended = hallulab("report", run.path)
    after = json.loads(run.report.read_text())
    assert "1 turn by ben, who settled others' different labels" in " ".join(ended.out.split())
    assert after["annotators"] == before["annotators"]
    assert [one["corrected"][-1]["corrected_hpt_1"] for one in (before, after)] == [0.75, 0.625]
