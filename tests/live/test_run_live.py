"""The main job on a real vLLM with the smallest model."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.simulator.bench.test_rows_recompute import assert_recomputes

pytestmark = pytest.mark.live

LIMIT_S = 240.0
"""The run is to take less, the server's start included, once environment and weights are there."""


def test_the_whole_line_up_runs_on_the_smallest_model(tmp_path: Path) -> None:
    hallulab = str(Path(sys.executable).with_name("hallulab"))
    subprocess.run([hallulab, "serve", "smollm2-135m", "--prepare"], check=True)
    started = time.perf_counter()
    command = [hallulab, "run", "--model", "smollm2-135m", "--limit", "2", "--out", str(tmp_path)]
    done = subprocess.run(command, check=True, capture_output=True, text=True)
    seconds = time.perf_counter() - started
    report = json.loads((tmp_path / "report.json").read_text(encoding="utf-8"))
    assert len({(row["chatbot"], row["detector"]) for row in report["rows"]}) == len(report["rows"]) == 10
    assert all("coverage" in row for row in report["rows"])
    assert_recomputes(tmp_path / "report.json", tmp_path / "conversations.jsonl", tmp_path / "verdicts.jsonl")
    assert str(tmp_path / "report.html") in done.stdout.replace("\n", "")
    assert seconds < LIMIT_S
