"""The kit that authors of chatbots and detectors test with."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

import hallulab
from hallulab import OperationalError, TurnView
from hallulab.testing.scripted import ScriptedModel
from hallulab.testing.tiny_pack import make_pack, words_for_vectors
from tests.places import ROOT
from tests.simulator.command_line import CommandLine

VIEW = TurnView(question="When does water boil?", passages=(), reply="At 90 degrees.")


def flag(request: dict[str, Any]) -> dict[str, float]:
    return {"Yes": 0.9, "No": 0.1}


def test_the_code_of_the_page_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    page = (ROOT / "docs/testing.md").read_text(encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    exec("".join(re.findall(r"^```python\n(.*?)^```", page, re.MULTILINE | re.DOTALL)), {})


def test_a_command_takes_its_address(hallulab: CommandLine, tmp_path: Path) -> None:
    pack = make_pack(tmp_path / "pack")
    with words_for_vectors(), ScriptedModel(lambda request: "The water boils.") as model:
        ended = hallulab(
            *("run", "--scenario", pack, "--model", model.name, "--base-url", model.base_url, "--quiet"),
            *("--chatbots", "vanilla", "--detectors", "lexical", "--min-turns", "1", "--max-turns", "1"),
            *("--out", tmp_path / "run"),
        )
    assert (ended.code, ended.err) == (0, "")
    assert "The water boils." in (tmp_path / "run" / "conversations.jsonl").read_text()


def test_an_address_where_nothing_answers_is_an_operational_error() -> None:
    with pytest.raises(OperationalError, match="no scripted model 'gone' answers"):
        hallulab.judge_replies([VIEW], "direct-judge", model="gone", base_url="scripted://gone/v1")


def test_two_models_of_one_name_are_refused() -> None:
    with ScriptedModel(flag), pytest.raises(ValueError, match="answers already"), ScriptedModel(flag):
        pass
