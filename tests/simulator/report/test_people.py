"""People's messages from files, and those of the package."""

from __future__ import annotations

import gzip
import json
import re
from importlib.resources import files
from pathlib import Path
from typing import Any

import pytest

from hallulab.scenarios.errors import UsageError
from hallulab.simulator.report.people import (
    HUMAN_COUNTS,
    read_human_counts,
    read_human_turns,
    read_people,
    read_reference,
)


def written(folder: Path, *lines: Any) -> Path:
    path = folder / "people.jsonl"
    path.write_text("".join(f"{json.dumps(line)}\n" for line in lines))
    return path


def test_our_own_file_has_the_conversations_of_mtrag_un() -> None:
    found = read_human_turns()
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


def test_the_counts_are_those_of_realsim() -> None:
    found = read_human_counts()
    assert (len(found), sum(len(one.counts["questions"]) for one in found)) == (951, 6689)
    assert {one.first_text for one in found} == {None}
    assert found[0].counts == {
        "turns": (6,),
        "first_words": (4,),
        "follow_up_words": (4, 18, 44, 12, 10),
        "questions": (0,) * 6,
        "facts_given": (),
        "pronoun_only": (0,) * 5,
        "thanks": (0,) * 6,
        "endings": (0,) * 6,
        "assistants_part": (0,) * 6,
    }


def test_no_text_of_realsim_is_kept() -> None:
    packed = files("hallulab.simulator.report").joinpath(HUMAN_COUNTS).read_bytes()
    words = set(re.findall("[a-z_0-9]*[a-z_]+[a-z_0-9]*", gzip.decompress(packed).decode().lower()))
    assert words == set(read_human_counts()[0].counts)


def test_without_files_people_are_those_of_the_package() -> None:
    found = [(one.name, len(one.conversations)) for one in read_people([])]
    assert found == [("MTRAG-UN", 265), ("realsim", 951)]


def test_names_of_files_are_short_and_unique(tmp_path: Path) -> None:
    for folder in "ab":
        (tmp_path / folder).mkdir()
        written(tmp_path / folder, {"user_turns": ["Hi"]})
    long = written(tmp_path, {"user_turns": ["Hi"]}).rename(tmp_path / "people-of-the-bank.jsonl")
    paths = [tmp_path / "a" / "people.jsonl", tmp_path / "b" / "people.jsonl", long]
    found = read_people(paths)
    assert [one.name for one in found] == ["people", "people 2", "people-of-…"]
    assert [one.source for one in found] == [str(path) for path in paths]


def test_names_differ_also_from_those_that_a_number_would_make(tmp_path: Path) -> None:
    paths = [tmp_path / str(number) / name for number, name in enumerate(("a.jsonl", "a 3.jsonl", "a.jsonl"))]
    for path in paths:
        path.parent.mkdir()
        path.write_text('{"user_turns": ["Hi"]}\n')
    assert [one.name for one in read_people(paths)] == ["a", "a 3", "a 4"]
