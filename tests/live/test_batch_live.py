"""Waves that the real `vllm run-batch` answers, with the smallest model."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

pytestmark = pytest.mark.live


def held(folder: Path) -> dict[str, Any]:
    """What was said in each conversation of a run, and the probabilities that the judge gave."""
    lines = [
        json.loads(line)
        for name in ("conversations.jsonl", "verdicts.jsonl")
        for line in (folder / name).read_text(encoding="utf-8").splitlines()
    ]
    return {
        line.get("id") or line["conversation"]: [(turn["user"], turn["reply"]) for turn in line["turns"]]
        if "turns" in line
        else line["score"]
        for line in lines
    }


def test_waves_hold_the_conversations_that_are_held_one_by_one(tmp_path: Path) -> None:
    hallulab = str(Path(sys.executable).with_name("hallulab"))
    subprocess.run([hallulab, "serve", "smollm2-135m", "--prepare"], check=True)
    limits = ("--limit", "3", "--min-turns", "1", "--max-turns", "1", "--reply-tokens", "30")
    command = [
        hallulab,
        "run",
        "--model",
        "smollm2-135m",
        "--chatbots",
        "vanilla",
        "--detectors",
        "lexical",
        *limits,
    ]
    for name, more in {"waves": ["--batch", "vllm"], "one": []}.items():
        subprocess.run([*command, *more, "--out", str(tmp_path / name)], check=True, capture_output=True)
    assert held(tmp_path / "waves") == held(tmp_path / "one")
    assert (tmp_path / "waves" / "batch" / "wave-0001-output.jsonl").exists()
