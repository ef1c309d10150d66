"""The index of a run's journals: what it holds, and that it reads only what was added."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from pathlib import Path

import pytest
from pydantic import BaseModel

from hallulab.scenarios.errors import UsageError
from hallulab.scenarios.transcript import Conversation, Verdict
from hallulab.simulator.records.folder import RunFolder
from hallulab.simulator.viewer import index, index_tables
from hallulab.simulator.viewer.index import Counts, Rate, RunIndex
from tests.builders import conversation, scored, unscored
from tests.simulator.viewer.serving import append


def index_of(
    folder: Path, chats: Sequence[Conversation] = (), verdicts: Sequence[Verdict] = ()
) -> tuple[RunFolder, RunIndex]:
    run = RunFolder(folder / "run")
    append(run.conversations, chats)
    append(run.verdicts, verdicts)
    found = RunIndex(run, folder / "indices")
    grow(found)
    return run, found


def grow(found: RunIndex) -> None:
    while found.grow():
        pass


CHATS = [conversation("a", ["x", "y"]), conversation("b", ["x"], "editor")]
VERDICTS = [
    scored("a", 0, [(0, 1)]),
    scored("a", 1),
    scored("b", 0, [(0, 1)]),
    unscored("b", 0, detector="other"),
]


def test_it_counts_what_is_there(tmp_path: Path) -> None:
    _, found = index_of(tmp_path, CHATS, VERDICTS)
    assert found.count() == Counts(conversations=2, turns=3, verdicts=4, flagged=2, flaws=0)
    assert found.rate() == [
        Rate("editor", "d", 1, 1, 1, 0),
        Rate("vanilla", "d", 2, 1, 2, 0),
        Rate("editor", "other", 0, 0, 1, 0),
    ]


def test_replies_are_classified_in_the_first_conversations_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(index_tables, "CLASSIFIED", 2)
    chats = [conversation(id, ["I cannot find that.", "It is 200."]) for id in "abc"]
    _, found = index_of(tmp_path, chats, [scored("a", 0)])
    assert found.rate() == [Rate("vanilla", "d", 1, 0, 2, 2)]


def test_it_reads_only_what_was_added(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run, found = index_of(tmp_path, CHATS)
    read: list[bytes] = []
    parse = index._parse

    def note(kind: type[BaseModel], line: bytes) -> object:
        read.append(line)
        return parse(kind, line)  # type: ignore[type-var]

    monkeypatch.setattr(index, "_parse", note)
    append(run.conversations, [conversation("c", ["z"])])
    grow(found)
    assert [b'"id":"c"' in line for line in read] == [True]
    assert found.count().conversations == 3


def test_another_process_goes_on_with_the_same_index(tmp_path: Path) -> None:
    run, found = index_of(tmp_path, CHATS, VERDICTS)
    again = RunIndex(run, tmp_path / "indices")
    assert again.count() == found.count()


def test_a_line_that_is_being_written_is_read_when_it_is_whole(tmp_path: Path) -> None:
    run, found = index_of(tmp_path, CHATS[:1])
    line = CHATS[1].model_dump_json()
    with run.conversations.open("a") as file:
        file.write(line[:40])
    assert not found.grow()
    assert found.count().conversations == 1
    with run.conversations.open("a") as file:
        file.write(line[40:] + "\n")
    grow(found)
    assert found.count().conversations == 2


def test_a_failed_conversation_is_replaced_by_its_next_try(tmp_path: Path) -> None:
    failed = conversation("a", [], error="no answer", stop_reason="error")
    again = conversation("a-try2", ["x"])
    late = conversation("a-try3", ["x", "y"])
    _, found = index_of(tmp_path, [failed, again, late], [scored("a-try2", 0, [(0, 1)])])
    _, [chat] = found.list_chats()
    assert (chat.id, chat.turns, chat.flagged) == ("a-try2", 1, 1)


def test_verdicts_on_replaced_tries_do_not_count(tmp_path: Path) -> None:
    failed = conversation("a", ["x", "y"], error="no answer", stop_reason="error")
    again = conversation("a-try2", ["x", "y", "z"])
    verdicts = [scored("a", 0), scored("a", 1), unscored("a-try2", 0), scored("a-try2", 0)]
    _, found = index_of(tmp_path, [failed, again], verdicts)
    assert found.count().verdicts == 1
    assert found.rate() == [Rate("vanilla", "d", 1, 0, 3, 0)]


def test_verdicts_that_come_before_their_conversation_count(tmp_path: Path) -> None:
    run, found = index_of(tmp_path, verdicts=VERDICTS[:2])
    assert found.count().verdicts == 0
    append(run.conversations, CHATS[:1])
    grow(found)
    assert found.count().verdicts == 2


def test_a_failed_verdict_is_replaced_and_another_is_not(tmp_path: Path) -> None:
    verdicts = [unscored("a", 0), scored("a", 0, [(0, 1)]), scored("a", 0)]
    _, found = index_of(tmp_path, CHATS[:1], verdicts)
    assert found.rate() == [Rate("vanilla", "d", 1, 1, 2, 0)]


def test_who_reads_lines_meanwhile_waits(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run, found = index_of(tmp_path, CHATS[:1])
    with run.conversations.open("a") as file:
        file.write("no json\n")
    other = threading.Thread(target=RunIndex(run, tmp_path / "indices").grow)
    list_files = RunIndex._list_files

    def start_the_other(index: RunIndex, journal: Path) -> list[Path]:
        monkeypatch.setattr(RunIndex, "_list_files", list_files)
        other.start()
        other.join(0.2)
        return list_files(index, journal)

    monkeypatch.setattr(RunIndex, "_list_files", start_the_other)
    grow(found)
    other.join()
    assert found.count() == Counts(conversations=1, turns=2, verdicts=0, flagged=0, flaws=1)


def test_a_line_that_cannot_be_read_is_counted_and_nothing_is_lost(tmp_path: Path) -> None:
    run, found = index_of(tmp_path, CHATS[:1])
    with run.conversations.open("a") as file:
        file.write('{"id": 3}\nno json\n\n')
    append(run.conversations, CHATS[1:])
    grow(found)
    assert (found.count().conversations, found.count().flaws) == (2, 2)


def test_a_journal_that_did_not_only_grow_is_read_anew(tmp_path: Path) -> None:
    run, found = index_of(tmp_path, CHATS)
    run.conversations.unlink()
    append(run.conversations, CHATS[1:])
    grow(found)
    assert [chat.id for chat in found.list_chats()[1]] == ["b"]


def test_a_longer_journal_in_the_place_of_one_with_its_number_is_read_anew(tmp_path: Path) -> None:
    run, found = index_of(tmp_path, CHATS[:1], VERDICTS[:2])
    # A new file may get the number of a deleted one, as writing into the same file does.
    chats = [conversation("a", ["another", "one"]), CHATS[1]]
    run.conversations.write_text("".join(f"{chat.model_dump_json()}\n" for chat in chats))
    grow(found)
    assert found.read_chat("a") == (chats[0], VERDICTS[:2])
    assert found.count() == Counts(conversations=2, turns=3, verdicts=2, flagged=1, flaws=0)


def test_a_conversation_that_was_changed_is_told(tmp_path: Path) -> None:
    run, found = index_of(tmp_path, CHATS)
    text = run.conversations.read_text()
    run.conversations.write_text(text.replace('"id":"a"', '"id":"z"'))
    with pytest.raises(UsageError, match="its journals were changed"):
        found.read_chat("a")


def test_lists_are_filtered_and_paged(tmp_path: Path) -> None:
    chats = [conversation(str(number), ["x"], persona=f"p{number % 2}") for number in range(5)]
    _, found = index_of(tmp_path, chats, [scored("2", 0, [(0, 1)]), scored("3", 0, [(0, 1)])])

    def ids(**asked: object) -> tuple[int, list[str]]:
        number, listed = found.list_chats(**asked)  # type: ignore[arg-type]
        return number, [chat.id for chat in listed]

    assert ids(skip=2, most=2) == (5, ["2", "3"])
    assert ids(persona="p0") == (3, ["0", "2", "4"])
    assert ids(flagged=True) == (2, ["2", "3"])
    assert ids(flagged=True, persona="p1") == (1, ["3"])
    assert ids(chatbot="editor") == (0, [])


def test_flagged_turns_are_found_across_conversations(tmp_path: Path) -> None:
    chats = [conversation(name, ["x", "y", "z"]) for name in "abc"]
    _, found = index_of(
        tmp_path, chats, [scored(*place, [(0, 1)]) for place in (("a", 2), ("c", 0), ("c", 1))]
    )
    assert found.find_flagged("a", -1, forward=True) == ("a", 2)
    assert found.find_flagged("a", 2, forward=True) == ("c", 0)
    assert found.find_flagged("c", 1, forward=True) is None
    assert found.find_flagged("c", 0, forward=False) == ("a", 2)
    assert found.find_flagged("a", 2, forward=False) is None
    assert found.find_flagged("unknown", 0, forward=True) is None


def test_a_conversation_is_read_with_its_verdicts(tmp_path: Path) -> None:
    _, found = index_of(tmp_path, CHATS, VERDICTS)
    assert found.read_chat("a") == (CHATS[0], VERDICTS[:2])
    assert found.read_chat("unknown") is None


def test_conversations_of_one_case_are_listed(tmp_path: Path) -> None:
    other = conversation("c", ["x"], seed=1)
    _, found = index_of(tmp_path, [*CHATS, other])
    assert [chat.chatbot for chat in found.list_case("a")] == ["vanilla", "editor"]
