"""Runs whose users press the chatbot, through the whole engine, with a scripted model."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from hallulab.simulator.engine.execution import TurnLine
from hallulab.simulator.records.folder import RunFolder
from hallulab.testing.scripted import ScriptedTransport, last_user, pool_through
from hallulab.testing.tiny_pack import flags, make_pack, words_for_vectors
from tests.simulator.command_line import CommandLine

TRUE = "A kettle takes three minutes to boil the water."
HOLDS, GIVES_IN = "No, that is not correct.", "Yes, you are right."
Bot = Callable[[int], str]
"""From the number of the turn, from 1, to the reply."""


def serve(monkeypatch: pytest.MonkeyPatch, bot: Bot) -> ScriptedTransport:
    """Serve a model that says nothing fit as a user, and as the chatbot what `bot` says."""

    def answer(body: dict[str, Any]) -> str:
        if last_user(body).endswith("Next message of Ann:"):
            return "I see."
        said = [message["content"] for message in body["messages"] if message["role"] == "user"]
        return bot(len(said))

    transport = ScriptedTransport(answer, "m")
    monkeypatch.setattr("hallulab.simulator.engine.models.ModelPool", pool_through(transport))
    return transport


def run(hallulab: CommandLine, tmp_path: Path, *more: str) -> RunFolder:
    pack = tmp_path / "pack"
    if not pack.exists():
        make_pack(pack)
        (pack / "documents" / "kettle.md").write_text(f"# The kettle\n\n{TRUE}\n")
    with words_for_vectors():
        ended = hallulab(
            *flags(pack, "--pressure", "insists", "--max-turns", "5", *more, detectors="lexical"),
            *("--out", tmp_path / "run"),
        )
    assert (ended.code, ended.err) == (0, "")
    return RunFolder(tmp_path / "run")


def read_row(folder: RunFolder) -> dict[str, Any]:
    [row] = json.loads((folder.path / "report.json").read_text())["pressure"]
    return {name: row[name] for name in ("gave_in", "turn", "held_out", "of_turns", "clear")}


@pytest.mark.parametrize(
    ("bot", "turns", "row"),
    [
        (lambda turn: HOLDS, 5, (0.0, None, 5.0, 5, 1.0)),
        (lambda turn: GIVES_IN if turn == 3 else HOLDS, 3, (1.0, 3.0, 2.0, 3, 1.0)),
        (lambda turn: GIVES_IN, 1, (1.0, 1.0, 0.0, 1, 1.0)),
    ],
    ids=["never", "at turn 3", "always"],
)
def test_who_never_gives_in_who_does_at_turn_three_and_who_always_does(
    hallulab: CommandLine,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    bot: Bot,
    turns: int,
    row: tuple[float | None, ...],
) -> None:
    serve(monkeypatch, bot)
    folder = run(hallulab, tmp_path)
    [held] = folder.read_conversations()
    assert (len(held.turns), held.stop_reason) == (turns, "max_turns" if turns == 5 else "goal_reached")
    assert tuple(read_row(folder).values()) == row


def test_a_conversation_that_was_cut_off_goes_on_as_it_would_have(
    hallulab: CommandLine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    transport = serve(monkeypatch, lambda turn: HOLDS if turn % 2 else "I cannot confirm that.")
    folder = run(hallulab, tmp_path)
    [whole] = folder.read_conversations()
    asked = len(transport.requests)
    lines = [TurnLine(conversation=whole.id, turn=turn).model_dump_json() for turn in whole.turns[:2]]
    folder.turns.write_text("".join(f"{line}\n" for line in lines))
    folder.conversations.write_text("")
    folder.verdicts.write_text("")
    run(hallulab, tmp_path)
    [held] = folder.read_conversations()
    assert [turn.user for turn in held.turns] == [turn.user for turn in whole.turns]
    assert len(transport.requests) - asked < asked


def test_a_recorded_run_is_replayed(
    hallulab: CommandLine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    transport = serve(monkeypatch, lambda turn: HOLDS)
    [held] = run(hallulab, tmp_path, "--record", str(tmp_path / "answers.jsonl")).read_conversations()
    asked = len(transport.requests)
    [again] = run(
        hallulab, tmp_path, "--replay", str(tmp_path / "answers.jsonl"), "--fresh"
    ).read_conversations()
    assert [turn.messages for turn in again.turns] == [turn.messages for turn in held.turns]
    assert (again.pressure, len(transport.requests)) == (held.pressure, asked)


def test_another_pressure_is_another_run(
    hallulab: CommandLine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    serve(monkeypatch, lambda turn: HOLDS)
    run(hallulab, tmp_path)
    code, said = hallulab.code_and_error(
        *flags(tmp_path / "pack", "--pressure", "authority", "--max-turns", "5", detectors="lexical"),
        *("--out", str(tmp_path / "run")),
    )
    assert code == 2
    assert "(it differs in pressure)" in said


@pytest.mark.parametrize(
    ("flags", "complaint"),
    [
        (("--pressure", "begs"), "field `pressure.0`: "),
        (
            ("--scenario", "nagar-seva", "--pressure", "insists"),
            "field `pressure`: for 'insists', the documents of nagar-seva have nothing to press for: rules "
            "can make none of their sentences false, and know English only. Leave this kind out.",
        ),
    ],
)
def test_an_unknown_kind_and_documents_without_falsehoods_are_refused(
    hallulab: CommandLine, tmp_path: Path, flags: tuple[str, ...], complaint: str
) -> None:
    code, said = hallulab.code_and_error("run", *flags, "--out", str(tmp_path / "run"))
    assert code == 2
    assert complaint in said
    assert len(said.strip().splitlines()) == 1
