"""Imported chats that cite: their citations are in every report."""

from __future__ import annotations

import json
from pathlib import Path

from tests.simulator.command_line import CommandLine

FILMS = "Films are lent for 7 days at the counter."
BOOKS = "Books can be renewed twice by telephone."


def write_chats(path: Path, replies: list[str]) -> Path:
    lines = [
        {
            "messages": [
                {"role": "user", "content": "How long may I keep films and books?"},
                {"role": "assistant", "content": reply, "context": [FILMS, BOOKS]},
            ]
        }
        for reply in replies
    ]
    path.write_text("".join(f"{json.dumps(line)}\n" for line in lines))
    return path


def test_reports_of_imported_chats_have_the_share_of_right_citations(
    hallulab: CommandLine, tmp_path: Path
) -> None:
    replies = [f"{FILMS[:-1]} [1].", f"{FILMS[:-1]} [2].", f"{BOOKS} [2] <b>{FILMS}</b> [7]", FILMS]
    chats, run = write_chats(tmp_path / "chats.jsonl", replies), tmp_path / "run"
    assert hallulab("import", chats, "--out", run).code == 0
    told = hallulab("report", run)
    assert (told.code, told.err) == (0, "")
    [line] = [
        line for line in told.out.partition("Citations:")[2].splitlines() if line.startswith("imported")
    ]
    assert line.split() == ["imported", "4", "100", "50", "1"]
    [row] = json.loads((run / "report.json").read_text())["citations"]
    assert (row["citations"], row["judged"], row["right"], row["not_there"]) == (4, 4, 0.5, 1)
    assert (run / "report-citations.csv").read_text().splitlines()[1] == "imported,4,1.0,0.5,,,1"
    assert 'id="citations"' in (run / "report.html").read_text()
