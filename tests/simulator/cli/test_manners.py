"""Runs whose users speak in manners."""

from __future__ import annotations

from pathlib import Path

import pytest

from hallulab.agents.users.personas import DEFAULT_MANNERS
from hallulab.simulator.records.folder import RunFolder
from hallulab.testing.scripted import ScriptedTransport, pool_through
from hallulab.testing.tiny_pack import flags, make_pack, words_for_vectors
from tests.simulator.command_line import CommandLine

SAID = "The kettle in the kitchen takes long. Can the kettle be quicker?"


@pytest.fixture
def transport(monkeypatch: pytest.MonkeyPatch) -> ScriptedTransport:
    transport = ScriptedTransport(lambda body: {"Yes": 0.1, "No": 0.9} if body.get("logprobs") else SAID, "m")
    monkeypatch.setattr("hallulab.simulator.engine.models.ModelPool", pool_through(transport))
    return transport


def run(hallulab: CommandLine, tmp_path: Path, *more: str) -> RunFolder:
    pack = tmp_path / "pack"
    if not pack.exists():
        make_pack(pack)
    with words_for_vectors():
        ended = hallulab(*flags(pack, *more, detectors="lexical"), "--out", tmp_path / "run")
    assert (ended.code, ended.err) == (0, "")
    return RunFolder(tmp_path / "run")


def told(transport: ScriptedTransport) -> list[str]:
    """What the model is told of how Ann speaks."""
    texts = (request["messages"][-1]["content"] for request in transport.requests)
    return [text.partition("\n")[0] for text in texts if text.startswith("Ann. ")]


def test_the_model_is_told_the_manner_and_each_conversation_says_which(
    hallulab: CommandLine, tmp_path: Path, transport: ScriptedTransport
) -> None:
    folder = run(hallulab, tmp_path, "--manners", "terse,pushes-back", "--repeats", "6")
    found = [held.manner for held in folder.read_conversations()]
    assert set(found) == {"terse", "pushes-back"}
    assert {line.partition(" ")[2].split()[0] for line in told(transport)} == {"Says", "Doubts"}
    assert {request["max_tokens"] for request in transport.requests if "seed" in request} >= {24, 96}


def test_slips_are_made_in_what_the_model_wrote(
    hallulab: CommandLine, tmp_path: Path, transport: ScriptedTransport
) -> None:
    folder = run(hallulab, tmp_path, "--manners", "misspelling+second-language", "--repeats", "4")
    said = [turn.user for held in folder.read_conversations() for turn in held.turns]
    assert len({text for text in said if text != SAID}) >= 4
    assert {len(text.split()) for text in said} != {len(SAID.split())}


def test_in_ones_own_manner_nothing_is_told_and_nothing_slips(
    hallulab: CommandLine, tmp_path: Path, transport: ScriptedTransport
) -> None:
    folder = run(hallulab, tmp_path, "--manners", "own")
    [held] = folder.read_conversations()
    assert (held.manner, {turn.user for turn in held.turns}) == (None, {SAID})
    assert set(told(transport)) == {"Ann. Brief."}


def test_by_default_users_talk_like_people_and_each_turn_says_how(
    hallulab: CommandLine, tmp_path: Path, transport: ScriptedTransport
) -> None:
    held = list(run(hallulab, tmp_path, "--repeats", "6").read_conversations())
    assert {one.manner for one in held} <= set(DEFAULT_MANNERS)
    turns = [turn for one in held for turn in one.turns]
    assert {turn.act for turn in turns} > {"asks", "commands"}


def test_in_manners_without_ways_of_talking_no_turn_names_one(
    hallulab: CommandLine, tmp_path: Path, transport: ScriptedTransport
) -> None:
    folder = run(hallulab, tmp_path, "--manners", "plain,terse", "--repeats", "2")
    assert {turn.act for one in folder.read_conversations() for turn in one.turns} == {None}
    first = [request for request in transport.requests if "First message of" in str(request["messages"][-1])]
    assert all("six to twelve words" in request["messages"][0]["content"] for request in first)
    assert '"act"' not in (tmp_path / "run" / "conversations.jsonl").read_text()


def test_more_users_in_other_manners_do_not_join_a_run(
    hallulab: CommandLine, tmp_path: Path, transport: ScriptedTransport
) -> None:
    run(hallulab, tmp_path, "--manners", "terse")
    with words_for_vectors():
        ended = hallulab(
            *flags(tmp_path / "pack", "--manners", "pronouns", detectors="lexical"), "--out", tmp_path / "run"
        )
    assert ended.code == 2
    assert "manners" in ended.err


def test_an_unknown_manner_is_named_with_those_that_there_are(hallulab: CommandLine, tmp_path: Path) -> None:
    code, told = hallulab.code_and_error("run", "--manners", "terse+rude", "--out", tmp_path / "run")
    assert code == 2
    assert told.startswith("error: field `manners`: there is no manner 'rude'; there are own, plain, terse,")
    assert not (tmp_path / "run").exists()
