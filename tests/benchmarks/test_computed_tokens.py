from __future__ import annotations

from pathlib import Path

import pytest

from benchmarks.computed_tokens import computed, main, minutes_table, table
from hallulab.scenarios.transcript import Call
from hallulab.simulator.records.folder import RunFolder
from hallulab.simulator.records.journals import Journals
from tests.builders import conversation, scored


def call(
    purpose: str, latency_s: float, read: int, cached: int | None, written: int, replayed: bool = False
) -> Call:
    return Call(
        purpose=purpose,
        model="m",
        prompt_tokens=read,
        completion_tokens=written,
        cached_tokens=cached,
        latency_s=latency_s,
        replayed=replayed,
    )


def journals() -> Journals:
    """One reply: two requests of its chatbot, of which the detector shares one, and one of the detector."""
    chat = conversation("a", ["x"])
    asked = call("chatbot.reformulate", 1.0, 100, 60, 10)
    shared = call("d.reformulate", 1.0, 100, 60, 10, replayed=True)
    turn = chat.turns[0].model_copy(update={"calls": (asked, call("chatbot.generate", 2.0, 50, None, 5))})
    verdict = scored("a", 0, [], detector="d").model_copy(
        update={"calls": (shared, call("d.ask", 3.0, 40, 32, 1))}
    )
    return Journals([chat.model_copy(update={"turns": (turn,)})], [verdict])


def test_a_shared_answer_counts_once_for_the_role_that_comes_first() -> None:
    found = {purpose: one.tokens for purpose, one in computed(journals()).items()}
    assert found == {"chatbot.reformulate": 50, "chatbot.generate": 55, "d.ask": 9}


def test_the_minutes_are_the_computed_tokens_over_the_rates(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(RunFolder, "require", lambda self: None)
    monkeypatch.setattr(RunFolder, "read_journals", lambda self: journals())
    assert minutes_table(tmp_path, read=0.5, write=0.1, steps=True).splitlines() == [
        "| role | tokens read | minutes | tokens written | minutes | together |",
        "|---|---:|---:|---:|---:|---:|",
        "| chatbot | 90 | 3.0 | 15 | 2.5 | 5.5 |",
        "| – reformulate | 40 | 1.3 | 10 | 1.7 | 3.0 |",
        "| – generate | 50 | 1.7 | 5 | 0.8 | 2.5 |",
        "| d | 8 | 0.3 | 1 | 0.2 | 0.4 |",
        "| – ask | 8 | 0.3 | 1 | 0.2 | 0.4 |",
        "| together | 98 | 3.3 | 16 | 2.7 | 5.9 |",
    ]


def test_one_rate_alone_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([str(tmp_path), "--read", "42"]) == 2
    assert "--read and --write go together. Give both, or none." in capsys.readouterr().err


def test_the_table_has_each_role_a_reply_and_its_share_of_the_bots(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "experiment.json").write_text("{}")
    monkeypatch.setattr(RunFolder, "require", lambda self: None)
    monkeypatch.setattr(RunFolder, "read_journals", lambda self: journals())
    assert table(tmp_path, steps=True).splitlines() == [
        "1 reply",
        "",
        "| role | requests a reply | read | of these cached | written | computed | of the bots' |",
        "|---|---:|---:|---:|---:|---:|---:|",
        "| chatbot | 2.0 | 150 | 60 | 15 | 105 | 1.00 |",
        "| – reformulate | 1.0 | 100 | 60 | 10 | 50 |  |",
        "| – generate | 1.0 | 50 | 0 | 5 | 55 |  |",
        "| d | 1.0 | 40 | 32 | 1 | 9 | 0.09 |",
        "| – ask | 1.0 | 40 | 32 | 1 | 9 |  |",
        "| together | 3.0 | 190 | 92 | 16 | 114 |  |",
    ]


def test_a_folder_without_a_run_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([str(tmp_path / "none")]) == 2
    assert capsys.readouterr().err.startswith("error: ")
