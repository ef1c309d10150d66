"""People's messages, from files."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from hallulab.scenarios.errors import UsageError
from hallulab.simulator.report.realism import read_reference


def written(folder: Path, *lines: Any) -> Path:
    path = folder / "people.jsonl"
    path.write_text("".join(f"{json.dumps(line)}\n" for line in lines))
    return path


def test_our_own_file_has_the_conversations_of_mtrag_un() -> None:
    found = read_reference(None)
    assert (len(found), sum(len(one.texts) for one in found)) == (265, 1103)
    assert len({one.user for one in found}) == 265


def test_lines_with_user_turns(tmp_path: Path) -> None:
    path = written(tmp_path, {"user_turns": ["Hi", " ", "Bye"], "collection": "x"}, {"user_turns": []})
    assert [one.texts for one in read_reference(path)] == [("Hi", "Bye"), ()]


def test_a_file_that_import_reads(tmp_path: Path) -> None:
    said = [{"role": "user", "content": "Who pays?"}, {"role": "assistant", "content": "The bank."}]
    assert [one.texts for one in read_reference(written(tmp_path, {"messages": said}))] == [("Who pays?",)]


def test_an_empty_file_has_no_messages(tmp_path: Path) -> None:
    assert read_reference(written(tmp_path)) == []


@pytest.mark.parametrize(
    ("line", "complaint"),
    [
        ({"user_turns": "Hi"}, "user_turns: must be a list"),
        ({"user_turns": [1]}, "user_turns.0: must be text"),
        ({"turns": ["Hi"]}, "user_turns: this key is missing"),
    ],
)
def test_a_bad_line_is_named(tmp_path: Path, line: Any, complaint: str) -> None:
    path = written(tmp_path, {"user_turns": ["Hi"]}, line)
    with pytest.raises(UsageError) as error:
        read_reference(path)
    assert f"{path}, line 2: {complaint}" in str(error.value)


def test_a_line_that_is_no_json_is_named(tmp_path: Path) -> None:
    path = written(tmp_path, {"user_turns": ["Hi"]})
    path.write_text(path.read_text() + "nothing\n")
    with pytest.raises(UsageError, match="line 2: not valid JSON"):
        read_reference(path)
