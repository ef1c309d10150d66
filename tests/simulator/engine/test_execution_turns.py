"""The journal of turns: what is read of it, and what is removed from it when."""

from __future__ import annotations

from pathlib import Path

import pytest

from hallulab.scenarios.errors import UsageError
from hallulab.scenarios.transcript import Turn
from hallulab.simulator.engine import execution
from hallulab.simulator.engine.execution import TurnJournal, TurnLine, read_turns


def turn(index: int, reply: str = "Yes.") -> Turn:
    return Turn(index=index, user="Is it?", reply=reply)


def lines(*said: tuple[str, Turn]) -> str:
    made = (TurnLine(conversation=name, turn=one).model_dump_json() for name, one in said)
    return "".join(f"{line}\n" for line in made)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "turns.jsonl"


def test_turns_are_read_by_conversation(path: Path) -> None:
    path.write_text(lines(("a", turn(0)), ("b", turn(0)), ("a", turn(1))))
    assert read_turns(path) == {"a": [turn(0), turn(1)], "b": [turn(0)]}


def test_those_of_a_conversation_that_has_ended_are_left_out(path: Path) -> None:
    path.write_text(lines(("a", turn(0)), ("b", turn(0))))
    assert read_turns(path, {"a"}) == {"b": [turn(0)]}


def test_a_first_turn_begins_a_conversation_anew(path: Path) -> None:
    path.write_text(lines(("a", turn(0)), ("a", turn(1)), ("a", turn(0, "No."))))
    assert read_turns(path) == {"a": [turn(0, "No.")]}


def test_a_missing_turn_is_told_with_its_line(path: Path) -> None:
    path.write_text(lines(("a", turn(0)), ("a", turn(2))))
    with pytest.raises(UsageError) as raised:
        read_turns(path)
    assert str(raised.value) == (
        f"{path}, line 2: field `turn.index`: turn 2 follows 1 turns of conversation 'a'. Delete the "
        "conversation's lines: it then starts over."
    )


def test_a_field_of_another_type_is_told_with_its_line(path: Path) -> None:
    path.write_text('{"conversation": "a", "turn": {"index": 0, "user": 3, "reply": "x"}}\n')
    with pytest.raises(UsageError, match=r"turns.jsonl, line 1: field `turn.user`"):
        read_turns(path)


def test_a_turn_stands_there_until_its_conversation_has_ended(path: Path) -> None:
    journal = TurnJournal(path, {})
    journal.append("a", turn(0))
    journal.append("b", turn(0))
    assert path.read_text() == lines(("a", turn(0)), ("b", turn(0)))
    journal.remove("a")
    journal.remove("b")
    assert path.read_text() == ""
    journal.append("c", turn(0))
    assert path.read_text() == lines(("c", turn(0)))
    journal.close()
    assert read_turns(path) == {"c": [turn(0)]}


def test_the_file_is_deleted_if_nothing_in_it_counts(path: Path) -> None:
    journal = TurnJournal(path, {})
    journal.append("a", turn(0))
    journal.remove("a")
    journal.close()
    assert not path.exists()


def test_what_does_not_count_is_removed_at_the_start(path: Path) -> None:
    path.write_text(lines(("a", turn(0)), ("b", turn(0))))
    TurnJournal(path, read_turns(path, {"a"})).close()
    assert path.read_text() == lines(("b", turn(0)))


def test_the_file_stays_short_in_a_long_run(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(execution, "MOST_DEAD_LINES", 3)
    journal = TurnJournal(path, {})
    journal.append("lasting", turn(0))
    for number in range(10):
        journal.append(f"short {number}", turn(0))
        journal.remove(f"short {number}")
        assert path.read_text().count("\n") <= 5
    journal.append("lasting", turn(1))
    journal.close()
    assert read_turns(path)["lasting"] == [turn(0), turn(1)]
