"""Evidence of bots that name none: searched when replies are judged or looked at, and written once."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest

from hallulab.chatbots.evidence import EvidenceSource, lacks_evidence, leave_evidence
from hallulab.chatbots.protocol import Reply
from hallulab.scenarios.errors import OperationalError, UsageError
from hallulab.scenarios.transcript import Message, Passage
from hallulab.simulator.engine.participants import Participants
from hallulab.simulator.records.folder import RunFolder
from hallulab.simulator.viewer.index import RunIndex
from tests.chatbots.stage import HOURS, Shelf
from tests.simulator.engine.cast import execute
from tests.simulator.engine.test_execution import Judge, Listener, cast, job


class Silent:
    """Answers, and names no passages."""

    async def reply(self, history: Sequence[Message]) -> Reply:
        query, steps = leave_evidence(history)
        return Reply(text=f"Answer after {len(history)} messages.", query=query, steps=steps)


class Broken:
    async def search(self, query: str, k: int) -> tuple[Passage, ...]:
        raise OperationalError("no weights.")


def people(shelf: Shelf | Broken, *judges: Judge) -> Participants:
    return cast(*judges, build_chatbot=lambda *_: Silent(), evidence=EvidenceSource(shelf, 4))


async def hold(folder: RunFolder, shelf: Shelf | Broken, *judges: Judge, again: bool = False) -> None:
    await execute(people(shelf, *judges), [] if again else [job("a")], folder, Listener())


async def test_who_only_simulates_searches_nothing(tmp_path: Path) -> None:
    folder, shelf = RunFolder(tmp_path), Shelf()
    await hold(folder, shelf)
    [held] = folder.read_conversations()
    assert shelf.searched == []
    assert [lacks_evidence(turn) for turn in held.turns] == [True, True]


async def test_who_judges_searches_before_the_conversation_is_written_once(tmp_path: Path) -> None:
    folder, shelf, judge = RunFolder(tmp_path), Shelf(), Judge()
    await hold(folder, shelf, judge)
    [held] = folder.read_conversations()
    assert [turn.passages for turn in held.turns] == [(HOURS,), (HOURS,)]
    assert [view.passages for view in judge.seen] == [(HOURS,), (HOURS,)]
    assert len(folder.conversations.read_text().splitlines()) == 1


async def test_who_judges_later_adds_the_evidence_once(tmp_path: Path) -> None:
    folder, shelf = RunFolder(tmp_path), Shelf()
    await hold(folder, Shelf())
    before = folder.conversations.read_bytes()
    for judge in (Judge(), Judge("2")):
        await hold(folder, shelf, judge, again=True)
        assert [view.passages for view in judge.seen] == [(HOURS,), (HOURS,)]
    [held] = folder.read_conversations()
    assert [turn.passages for turn in held.turns] == [(HOURS,), (HOURS,)]
    assert folder.conversations.read_bytes().startswith(before)
    assert len(folder.conversations.read_text().splitlines()) == 2
    assert len(shelf.searched) == 2
    assert len(folder.read_journals().verdicts) == 4


async def test_a_run_that_was_simulated_goes_on_with_what_it_has(folder: RunFolder) -> None:
    await hold(folder, Shelf())
    await execute(people(Shelf(), Judge()), [job("a"), job("b")], folder, Listener())
    assert sorted(one.id for one in folder.read_conversations()) == ["a", "b"]
    assert not any(lacks_evidence(turn) for one in folder.read_conversations() for turn in one.turns)


async def test_if_the_search_fails_what_was_said_is_kept_and_judged_later(folder: RunFolder) -> None:
    with pytest.raises(OperationalError, match="no weights"):
        await hold(folder, Broken(), Judge())
    assert [len(one.turns) for one in folder.read_conversations()] == [2]
    await hold(folder, Shelf(), Judge())
    assert [turn.passages for one in folder.read_conversations() for turn in one.turns] == [(HOURS,)] * 2


async def test_a_line_that_a_kill_has_cut_is_written_again(folder: RunFolder) -> None:
    await hold(folder, Shelf())
    first = folder.conversations.read_bytes()
    await hold(folder, Shelf(), Judge(), again=True)
    added = folder.conversations.read_bytes()[len(first) :]
    folder.conversations.write_bytes(first + added[:100])
    folder.verdicts.unlink()
    await hold(folder, Shelf(), Judge(), again=True)
    assert folder.conversations.read_bytes() == first + added


async def test_of_two_that_wrote_at_once_the_first_counts(folder: RunFolder) -> None:
    await hold(folder, Shelf())
    first = folder.conversations.read_bytes()
    await hold(folder, Shelf(), Judge(), again=True)
    added = folder.conversations.read_bytes()[len(first) :]
    folder.conversations.write_bytes(first + added + added.replace(b"opens at 7", b"opens at 8"))
    [held] = folder.read_conversations()
    assert held.turns[0].passages == (HOURS,)


async def test_a_conversation_that_stands_twice_for_no_such_reason_is_an_error(folder: RunFolder) -> None:
    await hold(folder, Shelf())
    folder.conversations.write_bytes(folder.conversations.read_bytes() * 2)
    with pytest.raises(UsageError, match="line 2: field `id`: an earlier line has the conversation 'a', too"):
        folder.read_conversations()


async def test_the_viewer_shows_the_evidence_once_it_is_there(tmp_path: Path) -> None:
    folder, index = RunFolder(tmp_path / "run"), RunIndex(RunFolder(tmp_path / "run"), tmp_path / "index")
    await hold(folder, Shelf())
    index.grow()
    await hold(folder, Shelf(), Judge(), again=True)
    index.grow()
    found = index.read_chat("a")
    assert found is not None
    assert [turn.passages for turn in found[0].turns] == [(HOURS,), (HOURS,)]
    assert (index.count().conversations, len(found[1])) == (1, 2)
