"""The check of reasons, on one reply made up here."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from benchmarks.reasons_check import check_gold


def test_a_reason_that_names_the_wrong_number_is_counted(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    quote = "Call the helpline at 102."
    reply = {
        "id": "one",
        "reply": quote,
        "question": "Whom do I call?",
        "passages": ["The helpline is reached at 1915."],
        "spans": [{"start": 0, "end": len(quote)}],
    }
    marks = {"key": "one", "spans": [{"quote": quote, "reason": "The helpline is 1915, not 102."}]}
    (tmp_path / "run").mkdir()
    (tmp_path / "run" / "annotations.jsonl").write_text(json.dumps(marks) + "\n", encoding="utf-8")
    (tmp_path / "replies.jsonl").write_text(json.dumps(reply) + "\n", encoding="utf-8")
    check_gold(tmp_path, show=True)
    printed = capsys.readouterr().out
    assert "gold: 1 of 1 reasons name what is wrong (100%)" in printed
    assert '"102"' in printed
