"""The kit that authors of chatbots and detectors test with."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import hallulab
from hallulab import OperationalError, Passage, TurnView
from hallulab.testing.scripted import ScriptedModel, last_user
from hallulab.testing.tiny_pack import make_pack, words_for_vectors
from tests.simulator.command_line import CommandLine

KETTLE = Passage(id="kettle#0", document="kettle", text="Water boils at 100 degrees.")
VIEW = TurnView(question="When does water boil?", passages=(KETTLE,), reply="At 90 degrees.")


def flag(request: dict[str, Any]) -> dict[str, float]:
    return {"Yes": 0.9, "No": 0.1}


def test_a_scripted_model_answers_a_detector() -> None:
    with ScriptedModel(flag, "judge") as model:
        [judgement] = hallulab.judge([VIEW], "direct-judge", model=model.name, base_url=model.base_url)
    assert judgement.outcome == "scored"
    assert "At 90 degrees." in last_user(model.requests[-1])
    assert {request["model"] for request in model.requests} == {"judge"}


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
        hallulab.judge([VIEW], "direct-judge", model="gone", base_url="scripted://gone/v1")


def test_two_models_of_one_name_are_refused() -> None:
    with ScriptedModel(flag), pytest.raises(ValueError, match="answers already"), ScriptedModel(flag):
        pass
