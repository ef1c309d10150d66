"""Values of records: lists that are none and names of many parts, each a sentence and no traceback."""

from __future__ import annotations

import sqlite3
from collections import Counter
from typing import Any

import pytest

from hallulab.scenarios.chats import langfuse, span_files
from hallulab.scenarios.chats import otel as spans
from hallulab.scenarios.chats.values import FormatError, Groups, list_in
from hallulab.scenarios.errors import OperationalError


def test_a_list_is_given_and_a_missing_one_is_empty() -> None:
    assert list_in({"a": [1]}, "a") == [1]
    assert list_in({"a": None}, "a") == list_in({}, "a") == []


@pytest.mark.parametrize("value", [True, 0, "x", {"a": 1}])
def test_anything_else_is_a_flaw_that_names_the_key(value: Any) -> None:
    with pytest.raises(FormatError, match=r"`observations` must be a list\. Correct it\."):
        list(
            langfuse.read_langfuse_spans(
                {"id": "t", "sessionId": "s", "output": "b", "observations": value}, Counter()
            )
        )
    with pytest.raises(FormatError, match=r"`events` must be a list\. Correct it\."):
        list(spans.read_otel_spans({"traceId": "t", "attributes": {}, "events": value}, Counter()))


def test_an_attribute_with_too_many_parts_is_a_flaw_that_names_it() -> None:
    attributes = {".".join("a" * 2_000): 1}
    with pytest.raises(FormatError, match=r"the attribute a\.a\..*… has more than 100 parts\."):
        list(spans.read_otel_spans({"traceId": "t", "attributes": attributes}, Counter()))


def test_attributes_may_have_as_many_parts_as_json_has_levels() -> None:
    name = ".".join("a" * 100)
    assert list(spans.read_otel_spans({"traceId": "t", "attributes": {name: 1}}, Counter()))


def test_an_index_of_any_length_is_a_number() -> None:
    flat = {f"a.{'9' * 5_000}": "last", "a.10": "second", "a.9": "first"}
    assert span_files.build_attribute_tree(flat) == {"a": ["first", "second", "last"]}


def test_a_full_temporary_folder_is_one_sentence(monkeypatch: pytest.MonkeyPatch) -> None:
    connect = sqlite3.connect

    def connect_to_full(name: str) -> sqlite3.Connection:
        database = connect(name)
        database.execute("PRAGMA max_page_count = 4")
        return database

    monkeypatch.setattr(sqlite3, "connect", connect_to_full)
    with Groups() as groups, pytest.raises(OperationalError) as caught:
        groups.add("a", 0, 1, "x" * 40_000)
    assert str(caught.value) == (
        "the system's folder for temporary files cannot hold what was read (database or disk is full). "
        "Free space there, or set TMPDIR to another folder."
    )
