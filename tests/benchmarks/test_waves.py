"""What `python -m benchmarks.waves` measures, in its short form."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

from benchmarks import waves
from benchmarks.scale.cost import Needed
from hallulab.testing.tiny_pack import words_for_vectors


@pytest.mark.slow
def test_both_ways_are_measured_on_the_same_conversations(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    def in_this_process(module: str, *arguments: str) -> Needed:
        monkeypatch.setattr(sys, "argv", [module, *arguments])
        waves.main()
        return Needed(1, 2.0, 3.0)

    monkeypatch.setattr(waves, "needed_by", in_this_process)
    monkeypatch.setattr(waves, "embed_without_model", lambda: None)
    with words_for_vectors():
        found = waves.measured(1, tmp_path)
    assert found["conversations"] == 5
    assert 10 <= found["waves"] <= 20
    assert found["requests"] >= 5 * found["conversations"]
    held = [
        sorted(
            json.loads(line)["id"]
            for line in (tmp_path / name / "conversations.jsonl").read_text().splitlines()
        )
        for name in ("waves", "one_by_one")
    ]
    assert held[0] == held[1]
