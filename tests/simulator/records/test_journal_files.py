"""Journals in shards are read as one."""

from __future__ import annotations

from pathlib import Path

import pytest

from hallulab.scenarios.errors import UsageError
from hallulab.simulator.records.folder import RunFolder
from hallulab.simulator.records.journal_files import LARGEST, choose_shard
from hallulab.simulator.records.journals import Journals
from hallulab.simulator.records.run_files import SHARDS, list_shards
from tests.builders import conversation, scored

PERSONAS = ("asha", "ravi", "meera")
EMPTY = Journals([], [])


@pytest.fixture
def run(tmp_path: Path) -> RunFolder:
    """A run in shards: each persona with one chatbot, one reply, which is judged."""
    folder = RunFolder(tmp_path)
    with folder.open_journals(EMPTY, planned=LARGEST + 1) as journals:
        for persona in PERSONAS:
            journals.add_conversation(conversation(f"c-{persona}", [f"I am {persona}."], persona=persona))
            journals.add_verdict(scored(f"c-{persona}", 0))
    return folder


def test_a_line_is_in_the_shard_of_its_persona(run: RunFolder) -> None:
    held = [path.name for path in list_shards(run.conversations) if path.stat().st_size]
    judged = [path.name for path in list_shards(run.verdicts) if path.stat().st_size]
    numbers = sorted(choose_shard(persona) for persona in PERSONAS)
    assert numbers == [4, 5, 10]
    assert held == [f"conversations-{number:02d}.jsonl" for number in numbers]
    assert judged == [f"verdicts-{number:02d}.jsonl" for number in numbers]
    assert not run.conversations.exists()


def test_shards_are_read_as_one(run: RunFolder) -> None:
    run.require()
    assert (run.is_in_shards, run.has_journal, run.is_empty) == (True, True, False)
    journals = run.read_journals()
    assert [one.persona for one in journals.conversations] == ["ravi", "meera", "asha"]
    assert [verdict.conversation for verdict in journals.verdicts] == ["c-ravi", "c-meera", "c-asha"]
    assert [head.persona for head in journals.heads] == ["ravi", "meera", "asha"]
    assert [one.turns[0].reply for one in run.read_conversations()[1:]] == ["I am meera.", "I am asha."]
    pairs = [(one.persona, [verdict.conversation for verdict in own]) for one, own in journals.judged()]
    assert pairs == [(name, [f"c-{name}"]) for name in sorted(PERSONAS)]


def test_a_run_that_goes_on_finds_the_shards_of_older_conversations(run: RunFolder) -> None:
    with run.open_journals(run.read_journals(), planned=1) as journals:
        journals.add_verdict(scored("c-asha", 0, detector="e"))
    found = run.read_shard(choose_shard("asha"))
    assert [(key.conversation, key.detector) for key in found.keys] == [("c-asha", "d"), ("c-asha", "e")]


@pytest.mark.parametrize(("planned", "in_shards"), [(LARGEST, False), (LARGEST + 1, True)])
def test_the_planned_conversations_decide(tmp_path: Path, planned: int, in_shards: bool) -> None:
    run = RunFolder(tmp_path)
    run.open_journals(EMPTY, planned).__exit__(None, None, None)
    assert run.is_in_shards is in_shards
    assert run.is_empty


def test_a_run_of_one_journal_keeps_it(tmp_path: Path) -> None:
    run = RunFolder(tmp_path)
    run.conversations.write_text("")
    run.open_journals(EMPTY, LARGEST + 1).__exit__(None, None, None)
    assert not run.is_in_shards


def test_a_line_in_another_shard_is_one_sentence(run: RunFolder) -> None:
    wrong, right = (list_shards(run.conversations)[number] for number in (0, choose_shard("asha")))
    wrong.write_text(conversation("c", ["No."], persona="asha").model_dump_json() + "\n")
    with pytest.raises(UsageError) as refused:
        run.read_journals()
    assert str(refused.value) == (
        f"{wrong}: conversation 'c' is with persona 'asha', whose conversations are in {right.name}. "
        "Move its line, and those of the verdicts on it."
    )


def test_a_damaged_line_is_named_with_its_shard(run: RunFolder) -> None:
    path = list_shards(run.verdicts)[choose_shard("ravi")]
    path.write_text(path.read_text().replace('"turn":0', '"turn":7'))
    with pytest.raises(UsageError) as refused:
        run.read_journals()
    assert str(refused.value).startswith(f"{path}, line 1: field `turn`: there is no turn 7")


def test_one_file_beside_shards_is_one_sentence(run: RunFolder) -> None:
    run.conversations.write_text("")
    with pytest.raises(UsageError) as refused:
        run.require()
    assert "has conversations.jsonl and conversations-00.jsonl" in str(refused.value)


def test_a_run_in_shards_is_cleared(run: RunFolder) -> None:
    assert len(list(run.path.iterdir())) == 2 * SHARDS
    run.clear()
    assert list(run.path.iterdir()) == []
