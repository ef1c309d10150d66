"""`hallulab report --planted`: the corrected numbers are written everywhere, or nothing is."""

from __future__ import annotations

import csv
import json
from pathlib import Path

from hallulab.simulator.records.folder import RunFolder
from tests.builders import conversation, scored
from tests.simulator.command_line import CommandLine

EACH = {"pairs": 10, "errors_flagged": 8, "twins_flagged": 1, "error_spans": 9, "twin_spans": 1}
MEASURED = {"detector": "d", "version": "1", "all_pairs": 70, "groups": [EACH] * 7}


def test_the_command_writes_the_corrected_numbers_everywhere(hallulab: CommandLine, tmp_path: Path) -> None:
    chats = [
        conversation(f"{bot}{n}", ["one"], chatbot=bot, persona=f"p{n}") for bot in "ab" for n in range(6)
    ]
    verdicts = [scored(chat.id, 0, [(0, 3)] if chat.chatbot == "a" else []) for chat in chats]
    run = RunFolder(tmp_path / "run")
    run.path.mkdir()
    run.conversations.write_text("".join(chat.model_dump_json() + "\n" for chat in chats))
    run.verdicts.write_text("".join(verdict.model_dump_json() + "\n" for verdict in verdicts))
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
