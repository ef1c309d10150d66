"""`hallulab chat`: what is typed, printed and saved; Ctrl-C, kills and hostile replies."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import httpx2
import pytest

from hallulab.scenarios.transcript import Span, Turn, Verdict
from hallulab.simulator.chat.terminal import render_reply, render_verdict
from hallulab.simulator.records.folder import RunFolder
from hallulab.testing.scripted import ScriptedModel
from tests.builders import scored
from tests.places import ROOT
from tests.simulator.chat.talking import REPLY, EndlessModel, answer, flags, is_about, typing
from tests.simulator.command_line import CommandLine


@pytest.fixture
def run(tmp_path: Path) -> RunFolder:
    return RunFolder(tmp_path / "run")


def test_the_reply_is_printed_and_what_the_detectors_find_stands_below_it(
    hallulab: CommandLine, pack: Path, run: RunFolder, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("builtins.input", typing("How hot is it?", ""))
    with ScriptedModel(answer) as model:
        ended = hallulab(*flags(pack, model.name, model.base_url), "--out", run.path)
    assert ended.out.splitlines() == [
        "Talk to vanilla about Tiny, judged by lexical.",
        "Ctrl-C stops a reply. An empty line or /quit ends the conversation.",
        "",
        "you: vanilla:",
        "| Water boils at 100 degrees. The teapot costs 500 rupees.",
        "  lexical flags 1 place (score 0.4):",
        "    “The teapot costs 500 rupees.”: not in the evidence: teapot, costs, 500, rupees",
        "",
        f"you: saved: {run.path}",
    ]
    assert (ended.code, ended.err) == (0, "")


def test_the_conversation_is_a_run_folder_that_other_commands_read(
    hallulab: CommandLine, pack: Path, run: RunFolder, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("builtins.input", typing("How hot is it?", "And the pot?", "/quit"))
    with ScriptedModel(answer) as model:
        assert hallulab(*flags(pack, model.name, model.base_url), "--out", run.path).code == 0
    [chat] = run.read_conversations()
    assert [(turn.user, turn.reply) for turn in chat.turns] == [
        ("How hot is it?", REPLY),
        ("And the pot?", REPLY),
    ]
    assert (chat.persona, chat.chatbot, chat.stop_reason, chat.error) == (
        *("person-1", "vanilla"),
        *("unknown", None),
    )
    saved = run.read_experiment()
    assert saved is not None
    assert saved.live is not None
    assert saved.live.at == "hallulab chat"
    assert saved.detectors.keys() == {"lexical"}
    reported = hallulab("report", run.path, "--json")
    report = json.loads(reported.out)
    assert (reported.code, report["imported"], report["rows"][0]["turns"]) == (0, True, 2)
    assert report["rows"][0]["hpt_1"] == 1.0
    assert 'id="audit"' not in run.page.read_text()
    assert hallulab("export", run.path, "--out", tmp_path / "chats.jsonl", "--format", "openai").code == 0
    assert json.loads((tmp_path / "chats.jsonl").read_text())["messages"][0] == {
        "role": "user",
        "content": "How hot is it?",
    }
    assert hallulab("compare", run.path, run.path).code == 0
    refused = hallulab("export", run.path, "--out", tmp_path / "a.jsonl", "--format", "openai", "--audited")
    assert refused.err == (
        f"error: --audited: {run.path} was typed by a person, so there is no simulated user to audit. "
        "Leave it out.\n"
    )


def test_a_data_set_of_it_says_that_a_person_asked(
    hallulab: CommandLine, pack: Path, run: RunFolder, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("builtins.input", typing("How hot is it?"))
    with ScriptedModel(answer) as model:
        hallulab(*flags(pack, model.name, model.base_url), "--out", run.path)
    assert hallulab("export", run.path, "--out", tmp_path / "hf", "--format", "hf").code == 0
    card = (tmp_path / "hf" / "README.md").read_text()
    assert "- typed by a person in `hallulab chat` of hallulab" in card
    assert "synthetic" not in card


def test_a_second_conversation_joins_the_folder(
    hallulab: CommandLine, pack: Path, run: RunFolder, monkeypatch: pytest.MonkeyPatch
) -> None:
    with ScriptedModel(answer) as model:
        for _ in range(2):
            monkeypatch.setattr("builtins.input", typing("How hot is it?"))
            hallulab(*flags(pack, model.name, model.base_url), "--out", run.path)
    chats = run.read_journals()
    assert [chat.persona for chat in chats.conversations] == ["person-1", "person-2"]
    assert len({chat.id for chat in chats.conversations}) == 2
    assert len(chats.verdicts) == 2


def test_another_run_is_not_mixed_with_it(
    hallulab: CommandLine, pack: Path, run: RunFolder, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("builtins.input", typing("How hot is it?"))
    with ScriptedModel(answer) as model:
        chatting = flags(pack, model.name, model.base_url)
        hallulab(*chatting, "--out", run.path)
        before = run.conversations.read_bytes()
        simulated = hallulab("run", *chatting[1:], "--out", run.path)
        assert (simulated.code, "holds another experiment" in simulated.err) == (2, True)
        (run.path / "other").mkdir()
        other = RunFolder(run.path / "other")
        other.conversations.write_bytes(before)
        refused = hallulab(*chatting, "--out", other.path)
    assert refused.err == f"error: {other.path} holds a run, not your conversations. Give another --out.\n"
    assert run.conversations.read_bytes() == other.conversations.read_bytes() == before


def test_ctrl_c_stops_the_reply_and_keeps_what_was_said(
    hallulab: CommandLine, pack: Path, run: RunFolder, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("builtins.input", typing("How hot is it?", "Endless?", "And now?", ""))
    with EndlessModel(lambda: os.kill(os.getpid(), signal.SIGINT)) as model:
        ended = hallulab(*flags(pack, model.name, model.base_url), "--out", run.path)
    assert "stopped: this message has no reply and is not kept. Earlier messages are." in ended.out
    assert ended.code == 0
    [chat] = run.read_conversations()
    assert [turn.user for turn in chat.turns] == ["How hot is it?", "And now?"]
    assert [verdict.turn for verdict in run.read_journals().verdicts] == [0, 1]


def test_ctrl_c_where_a_message_is_typed_ends_the_conversation(
    hallulab: CommandLine, pack: Path, run: RunFolder, monkeypatch: pytest.MonkeyPatch
) -> None:
    typed = typing("How hot is it?")

    def read(prompt: str) -> str:
        try:
            return typed(prompt)
        except EOFError:
            os.kill(os.getpid(), signal.SIGINT)
            return "never said"

    monkeypatch.setattr("builtins.input", read)
    with ScriptedModel(answer) as model:
        ended = hallulab(*flags(pack, model.name, model.base_url), "--out", run.path)
    assert (ended.code, ended.out.splitlines()[-1]) == (0, f"saved: {run.path}")
    assert [len(chat.turns) for chat in run.read_conversations()] == [1]


TYPES_THREE = """
import os, signal, sys
from unittest.mock import patch
from hallulab.simulator.cli.main import main
from hallulab.testing.tiny_pack import words_for_vectors
from tests.simulator.chat.talking import EndlessModel, typing

kill = lambda: os.kill(os.getpid(), signal.SIGKILL)
typed = typing("First?", "Second?", "Endless?")
with words_for_vectors(), EndlessModel(kill), patch("builtins.input", typed):
    main()
"""


@pytest.mark.slow
def test_a_kill_within_a_reply_keeps_the_turns_before_it(
    pack: Path, run: RunFolder, hallulab: CommandLine
) -> None:
    command = [*flags(pack, "endless", "scripted://endless/v1"), "--out", str(run.path)]
    ended = subprocess.run(
        [sys.executable, "-c", TYPES_THREE, *command],
        cwd=ROOT,
        timeout=240,
        check=False,
        stdout=subprocess.PIPE,
    )
    assert ended.returncode == -signal.SIGKILL
    [chat] = run.read_conversations()
    assert [turn.user for turn in chat.turns] == ["First?", "Second?"]
    assert [verdict.turn for verdict in run.read_journals().verdicts] == [0, 1]
    assert hallulab("report", run.path).code == 0


def test_a_reply_that_fails_is_told_and_the_conversation_goes_on(
    hallulab: CommandLine, pack: Path, run: RunFolder, monkeypatch: pytest.MonkeyPatch
) -> None:
    def failing(request: Mapping[str, Any]) -> Any:
        return httpx2.Response(400, text="no such thing") if is_about(request, "Break!") else REPLY

    monkeypatch.setattr("builtins.input", typing("How hot is it?", "Break!", "And now?"))
    with ScriptedModel(failing) as model:
        ended = hallulab(*flags(pack, model.name, model.base_url), "--out", run.path)
    assert "no reply: chatbot vanilla: " in ended.out
    [chat] = run.read_conversations()
    assert [turn.user for turn in chat.turns] == ["How hot is it?", "And now?"]
    assert (chat.stop_reason, chat.error, len(chat.calls)) == ("unknown", None, 1)


def test_nothing_said_saves_nothing(
    hallulab: CommandLine, pack: Path, run: RunFolder, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("builtins.input", typing(""))
    with ScriptedModel(answer) as model:
        ended = hallulab(*flags(pack, model.name, model.base_url), "--out", run.path)
    assert ended.out.splitlines()[-1] == "you: nothing was said, so nothing is saved."
    assert not run.path.exists()


def test_a_recorded_conversation_is_replayed_without_a_model(
    hallulab: CommandLine, pack: Path, run: RunFolder, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    recording = tmp_path / "recording.jsonl"
    with ScriptedModel(answer) as model:
        command = flags(pack, model.name, model.base_url)
        monkeypatch.setattr("builtins.input", typing("How hot is it?"))
        hallulab(*command, "--out", run.path, "--record", recording)
    monkeypatch.setattr("builtins.input", typing("How hot is it?"))
    again = RunFolder(tmp_path / "again")
    assert hallulab(*command, "--out", again.path, "--replay", recording).code == 0
    assert [chat.turns[0].reply for chat in again.read_conversations()] == [REPLY]
    assert again.verdicts.read_text() == run.verdicts.read_text()


def test_a_bot_of_ones_own_is_talked_to_by_its_name_in_the_file(
    hallulab: CommandLine, pack: Path, run: RunFolder, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "my_bot.py").write_text("def answer(dialogue):\n    return dialogue[-1]['content'].upper()\n")
    (tmp_path / "experiment.yaml").write_text(
        f"scenario: {pack}\nchatbots:\n  - vanilla\n  - {{name: mine, kind: callable, "
        "options: {target: my_bot:answer}}\ndetectors: [lexical]\n"
    )
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("builtins.input", typing("how hot is water?"))
    ended = hallulab("chat", "-c", "experiment.yaml", "--chatbots", "mine", "--out", run.path)
    assert (ended.code, ended.err) == (0, "")  # no model is served for it
    assert "mine:\n| HOW HOT IS WATER?\n" in ended.out
    assert [chat.chatbot for chat in run.read_conversations()] == ["mine"]


@pytest.mark.parametrize(
    ("given", "said"),
    [
        (["--chatbots", "vanilla,editor"], "--chatbots: you talk to one at a time. Give one name."),
        (["--chatbots", "nobody"], "nobody"),
        (["--detectors", "nothing"], "nothing"),
    ],
)
def test_what_cannot_be_is_told_in_one_line(
    hallulab: CommandLine, pack: Path, run: RunFolder, given: list[str], said: str
) -> None:
    with ScriptedModel(answer) as model:
        ended = hallulab(*flags(pack, model.name, model.base_url), *given, "--out", run.path)
    assert (ended.code, ended.err.count("\n"), said in ended.err) == (2, 1, True)
    assert not run.path.exists()


def turn(reply: str) -> Turn:
    return Turn(index=0, user="?", reply=reply)


def test_lines_of_a_reply_cannot_be_taken_for_ours() -> None:
    assert render_reply("bot", turn("Yes.\n  lexical flags nothing\nyou: ok")) == (
        "bot:\n| Yes.\n|   lexical flags nothing\n| you: ok"
    )


def test_each_flagged_place_has_a_line() -> None:
    spans = (
        Span(start=101, end=107, text="Rs\n500", severity=4, reason="It is\nRs 200."),
        Span(start=309, end=313, text="Rs 7", probability=0.75),
        Span(start=None, end=None, text="Rs 9"),
    )
    verdict = scored("c", 0).model_copy(update={"spans": spans, "flagged": True, "score": 0.9})
    assert render_verdict(verdict).splitlines() == [
        "  d flags 3 places (score 0.9):",
        "    “Rs 500”, severity 4 of 5: It is Rs 200.",
        "    “Rs 7”, unsupported with probability 0.75",
        "    “Rs 9”",
    ]


def test_what_is_not_judged_says_why() -> None:
    failed = Verdict(
        outcome="failed", error="no\nanswer", conversation="c", turn=0, detector="judge", version="1"
    )
    assert render_verdict(failed) == "  judge failed: no answer"
    clean = scored("c", 0)
    assert render_verdict(clean) == "  d flags nothing (score 0)"
