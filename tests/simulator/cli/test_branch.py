"""`hallulab branch` on the recorded run of the real 1.5B model, whose answers are those of equal requests."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from hallulab.scenarios.transcript import Conversation
from hallulab.simulator.records.folder import RunFolder
from tests.demo import EXPERIMENT, MODEL, RECORDING
from tests.kit.kill_points import journal_lines
from tests.places import RECORDINGS, ROOT
from tests.simulator.command_line import CommandLine

BOT = """
import json

def reply(messages):
    said = [message["content"] for message in messages]
    return {"reply": json.dumps(said), "passages": ["The fee is Rs 200."]}
"""


def replies(conversations: list[Conversation], chatbot: str) -> dict[tuple[str, int], Any]:
    """Persona and number of exchanges before → all that the chatbot did there, without the user's calls."""
    found = {}
    for one in conversations:
        if one.chatbot == chatbot:
            for turn in one.turns:
                calls = tuple(call for call in turn.calls if call.role == "chatbot")
                alike = turn.model_copy(update={"index": 0, "calls": calls})
                found[one.persona, one.depth(turn.index)] = (one.history(turn.index), alike)
    return found


@pytest.mark.parametrize("chatbot", ["vanilla", "editor", "fact-checker"])
def test_the_runs_own_chatbot_says_the_same_again(
    hallulab: CommandLine, demo_replay: RunFolder, tmp_path: Path, chatbot: str
) -> None:
    """It is asked the same after the same history, so the recording has the answers, the detectors' too."""
    out = RunFolder(tmp_path / "out")
    arguments = ("--from", chatbot, "--chatbots", chatbot, "--replay", RECORDING, "--quiet")
    ended = hallulab("branch", demo_replay.path, "--out", out.path, *arguments, "--json")
    assert (ended.code, ended.err) == (0, "")
    held = out.read_conversations()
    assert len(held) == 4
    assert all(len(one.turns) == 1 for one in held)
    assert replies(held, chatbot) == replies(demo_replay.read_conversations(), chatbot)
    report = json.loads(ended.out)
    for row in report["fixed_prefix"]["rows"]:
        assert (row["replies"], row["branched"], row["changed"]) == (4, 4, False)
        assert row["free_hpt_1"] == row["fixed_hpt_1"]
        assert row["path"] == 0.0
    free = json.loads(demo_replay.report.read_text())
    names = ("hpt_1", "tokacc_1", "calls_per_reply", "conversations", "turns")
    one, other = (
        [[row[name] for name in names] for row in rows if row["chatbot"] == chatbot]
        for rows in (report["rows"], free["rows"])
    )
    assert one == other


def test_the_first_message_is_the_same_for_all_chatbots(
    hallulab: CommandLine, demo_replay: RunFolder, tmp_path: Path
) -> None:
    """Before it there is no history, so free-running and fixed-prefix replies are the same there."""
    out = RunFolder(tmp_path / "out")
    arguments = ("--turns", "0", "--replay", RECORDING, "--quiet", "--json")
    ended = hallulab("branch", demo_replay.path, "--out", out.path, *arguments)
    assert (ended.code, ended.err) == (0, "")
    report = json.loads(ended.out)["fixed_prefix"]
    assert {(row["chatbot"], row["replies"], row["path"]) for row in report["rows"]} == {
        (name, 2, 0.0) for name in ("vanilla", "prompt-engineered", "editor", "fact-checker", "agent")
    }
    assert {line["remaining"] for line in report["comparisons"]} <= {None, 1.0}


def test_the_recorded_branches_give_the_numbers_of_the_docs(
    hallulab: CommandLine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """All five chatbots after Vanilla's history, answered by the real model."""
    monkeypatch.chdir(tmp_path)
    replay = ("--replay", RECORDINGS / "branch.jsonl.gz", "--quiet")
    headline = ROOT / "examples" / "headline.yaml"
    config = ("-c", headline, "--personas", "upi-failed-transfer", "--model", MODEL)
    assert hallulab("run", *config, "--detectors", "halludetect", "--out", "runs/free", *replay).code == 0
    ended = hallulab("branch", "runs/free", "--out", "runs/fixed", *replay)
    assert (ended.code, ended.err) == (0, "")
    printed = [line.rstrip() for line in ended.out.splitlines()]
    told = (ROOT / "docs" / "fixed-prefix.md").read_text(encoding="utf-8").split("```\n")
    tables, sentences = (part.splitlines() for part in told[1:4:2])
    assert len(tables) == 16
    first = printed.index("") + 1
    assert printed[first : first + len(tables)] == tables
    assert " ".join(sentences) in " ".join(printed)
    fixed = json.loads(Path("runs/fixed/report.json").read_text())["fixed_prefix"]
    assert {
        (row["free_hpt_1"], row["fixed_hpt_1"]) for row in fixed["rows"] if row["chatbot"] == "agent"
    } == {(1.0, 1.5)}


def branch(hallulab: CommandLine, demo_replay: RunFolder, out: Path, *more: str | Path) -> tuple[int, str]:
    arguments = ("--chatbots", "vanilla", "--detectors", "lexical", "--replay", RECORDING, "--quiet")
    ended = hallulab("branch", demo_replay.path, "--out", out, *arguments, *more)
    return ended.code, ended.err


def test_a_second_start_goes_on(hallulab: CommandLine, demo_replay: RunFolder, tmp_path: Path) -> None:
    some, whole = RunFolder(tmp_path / "some"), RunFolder(tmp_path / "whole")
    assert branch(hallulab, demo_replay, some.path, "--turns", "1") == (0, "")
    first = some.conversations.read_text()
    assert len(first.splitlines()) == 2
    assert branch(hallulab, demo_replay, some.path) == (0, "")
    assert branch(hallulab, demo_replay, whole.path) == (0, "")
    assert some.conversations.read_text().startswith(first)
    assert journal_lines(some.path) == journal_lines(whole.path)
    assert some.report.read_text() == whole.report.read_text()


def test_the_report_needs_the_run_no_more(
    hallulab: CommandLine, demo_replay: RunFolder, tmp_path: Path
) -> None:
    copy = RunFolder(tmp_path / "run")
    copy.path.mkdir()
    for name in ("experiment.json", "conversations.jsonl", "verdicts.jsonl"):
        (copy.path / name).write_bytes((demo_replay.path / name).read_bytes())
    out = RunFolder(tmp_path / "out")
    assert branch(hallulab, copy, out.path) == (0, "")
    before = out.report.read_bytes()
    for file in copy.path.iterdir():
        file.unlink()
    assert hallulab("report", out.path).code == 0
    assert out.report.read_bytes() == before


def test_a_bot_of_ones_own_is_given_the_history(
    hallulab: CommandLine, demo_replay: RunFolder, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "mybot.py").write_text(BOT)
    config = tmp_path / "mine.yaml"
    config.write_text("chatbots: [{name: mine, kind: callable, options: {target: 'mybot:reply'}}]\n")
    monkeypatch.chdir(tmp_path)
    out = RunFolder(tmp_path / "out")
    arguments = ("-c", config, "--turns", "1", "--detectors", "lexical", "--replay", RECORDING, "--quiet")
    ended = hallulab("branch", demo_replay.path, "--out", out.path, *arguments)
    assert (ended.code, ended.err) == (0, "")
    histories = {
        one.persona: one.history(1) for one in demo_replay.read_conversations() if one.chatbot == "vanilla"
    }
    asked = {
        one.persona: one.turns[1].user for one in demo_replay.read_conversations() if one.chatbot == "vanilla"
    }
    assert {one.persona: json.loads(one.turns[0].reply) for one in out.read_conversations()} == {
        persona: [*(message.text for message in history), asked[persona]]
        for persona, history in histories.items()
    }


@pytest.mark.parametrize("kind", ["callable", "autogen", "endpoint", "a-plug-in"])
@pytest.mark.parametrize("more", [(), ("--chatbots", "vanilla,mine")])
def test_a_run_folder_alone_starts_nobodys_code(
    hallulab: CommandLine, demo_replay: RunFolder, tmp_path: Path, kind: str, more: tuple[str, ...]
) -> None:
    run = RunFolder(tmp_path / "run")
    run.path.mkdir()
    run.conversations.write_bytes(demo_replay.conversations.read_bytes())
    saved = json.loads(demo_replay.experiment.read_text())
    mine = {"name": "mine", "kind": kind, "options": {"target": "mybot:reply", "python": "./evil"}}
    saved["experiment"]["chatbots"] = [{"name": "vanilla", "kind": "vanilla"}, mine]
    run.experiment.write_text(json.dumps(saved))
    ended = hallulab("branch", run.path, "--out", tmp_path / "out", *more, "--replay", RECORDING)
    assert (ended.code, ended.err) == (
        2,
        f"error: {run.path}: its chatbot 'mine' is other people's code or service ({kind}), which a run "
        "folder alone does not start. Name it in an experiment file outside any run folder, given with -c, "
        "or leave it out with --chatbots.\n",
    )
    assert branch(hallulab, run, tmp_path / "out", "--turns", "0") == (0, "")


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (("--turns", "2"), "no conversation of vanilla has turn 2. The longest has 2 turns"),
        (("--turns", "x"), "--turns x: give whole numbers from 0 to 50"),
        (("--from", "nobody"), "has no reply of a chatbot 'nobody'"),
        (("--chatbots", "nobody"), "nobody"),
    ],
)
def test_a_mistake_is_told_in_one_sentence(
    hallulab: CommandLine, demo_replay: RunFolder, tmp_path: Path, arguments: tuple[str, ...], told: str
) -> None:
    ended = hallulab("branch", demo_replay.path, "--out", tmp_path / "out", *arguments, "--replay", RECORDING)
    assert (ended.code, ended.err.count("\n")) == (2, 1)
    assert told in ended.err
    assert not (tmp_path / "out").exists()


def test_a_folder_that_is_no_run(hallulab: CommandLine, tmp_path: Path) -> None:
    ended = hallulab("branch", tmp_path, "--out", tmp_path / "out")
    assert ended.code == 2
    assert "is no run folder" in ended.err


def test_the_run_itself_is_no_place_for_it(hallulab: CommandLine, demo_replay: RunFolder) -> None:
    before = demo_replay.conversations.read_bytes()
    code, error = branch(hallulab, demo_replay, demo_replay.path, "--fresh")
    assert (code, "this is the run to branch off from" in error) == (2, True)
    assert demo_replay.conversations.read_bytes() == before


def test_a_branched_run_is_judged_and_exported_like_any_other(
    hallulab: CommandLine, demo_replay: RunFolder, tmp_path: Path
) -> None:
    out = RunFolder(tmp_path / "out")
    assert branch(hallulab, demo_replay, out.path, "--turns", "1") == (0, "")
    assert hallulab("detect", out.path, "--detectors", "evidence-chain-lexical", "--json").code == 0
    assert {verdict.turn for verdict in out.read_journals().verdicts} == {0}
    data = tmp_path / "data.jsonl"
    assert hallulab("export", out.path, "--detector", "lexical", "--out", data).code == 0
    exported = [json.loads(line) for line in data.read_text().splitlines()]
    assert [(len(line["history"]), line["meta"]["turn"]) for line in exported] == [(2, 1)] * 2


def test_no_conversations_from_their_beginning_are_added(
    hallulab: CommandLine, demo_replay: RunFolder, tmp_path: Path
) -> None:
    out = tmp_path / "out"
    assert branch(hallulab, demo_replay, out) == (0, "")
    config = ("-c", EXPERIMENT, "--model", MODEL)
    ended = hallulab("run", *config, "--replay", RECORDING, "--out", out)
    assert ended.code == 2
    assert "holds conversations that branch off, and the two are not mixed" in ended.err
