"""Waves that the real `vllm run-batch` answers, with the default model."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from hallulab.testing.tiny_pack import make_pack

pytestmark = pytest.mark.live

USERS = 20


def make_scripted_pack(folder: Path) -> Path:
    """A pack whose users say what is written, so that nothing is sampled."""
    make_pack(folder)
    personas = [
        f"  - {{id: user-{number}, name: Ann, grievance: Her tea is cold., goals: [Warm tea], "
        f"manner: Brief., summary: She asked., "
        f"messages: [How long do {number} kettles take?, And at 50 degrees?]}}\n"
        for number in range(1, USERS + 1)
    ]
    (folder / "personas.yaml").write_text("personas:\n" + "".join(personas))
    return folder


def held(folder: Path) -> dict[str, list[tuple[str, str]]]:
    """What was said in each conversation of a run."""
    lines = (folder / "conversations.jsonl").read_text(encoding="utf-8").splitlines()
    return {
        one["id"]: [(turn["user"], turn["reply"]) for turn in one["turns"]] for one in map(json.loads, lines)
    }


@pytest.mark.timeout(1800)
def test_waves_hold_the_conversations_that_are_held_one_by_one(tmp_path: Path) -> None:
    hallulab = str(Path(sys.executable).with_name("hallulab"))
    command = [hallulab, "run", "--scenario", str(make_scripted_pack(tmp_path / "pack"))]
    command += ["--chatbots", "vanilla", "--detectors", "lexical", "--reply-tokens", "30"]
    for name, more in {"waves": ["--batch", "vllm"], "one": []}.items():
        made = [*command, *more, "--out", str(tmp_path / name), "--", "--enforce-eager"]
        subprocess.run(made, check=True, capture_output=True)
    found = held(tmp_path / "waves")
    assert found == held(tmp_path / "one")
    assert [len(turns) for turns in found.values()] == [2] * USERS
    batches = sorted((tmp_path / "waves" / "batch").glob("wave-*-input.jsonl"))
    assert [len(batch.read_text().splitlines()) for batch in batches] == [USERS] * 4
