"""Two runs are the same where only identifiers and times differ."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.same_results import main


def run_of(folder: Path, identity: str, score: float) -> Path:
    folder.mkdir()
    talked = {"id": identity, "persona": "p", "chatbot": "b", "seed": 0, "turns": [{"reply": "Yes."}]}
    judged = {"conversation": identity, "turn": 0, "detector": "d", "version": identity, "score": score}
    (folder / "conversations.jsonl").write_text(json.dumps(talked) + "\n")
    (folder / "verdicts.jsonl").write_text(json.dumps(judged) + "\n")
    (folder / "report.json").write_text(json.dumps({"rows": [score], "ledger": identity}))
    return folder


def test_identifiers_and_versions_may_differ(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([str(run_of(tmp_path / "a", "1", 0.5)), str(run_of(tmp_path / "b", "2", 0.5))]) == 0
    assert capsys.readouterr().out == "the same\n"


def test_another_score_is_a_difference(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([str(run_of(tmp_path / "a", "1", 0.5)), str(run_of(tmp_path / "b", "2", 0.6))]) == 1
    assert capsys.readouterr().out == (
        "report.rows[0]: 0.5 → 0.6\nverdicts.p/b/0/0/d.score: 0.5 → 0.6\n2 differences\n"
    )
