"""Lists of conversations: what is read for a page does not grow with the run."""

from __future__ import annotations

import sqlite3
from itertools import product

import pytest

from hallulab.simulator.viewer.index_tables import (
    add_chat,
    add_verdict,
    lay_out_tables,
    list_conversations,
    list_names,
)
from tests.builders import conversation, scored, unscored


@pytest.fixture
def held() -> sqlite3.Connection:
    made = sqlite3.connect(":memory:")
    lay_out_tables(made)
    return made


@pytest.mark.parametrize(
    ("chatbot", "persona", "flagged"), [*product(["", "vanilla"], ["", "asha"], [False, True])]
)
def test_a_list_is_found_in_an_index_and_only_its_page_is_read(
    held: sqlite3.Connection, chatbot: str, persona: str, flagged: bool
) -> None:
    queries: list[str] = []
    held.set_trace_callback(queries.append)
    list_conversations(held, chatbot, persona, flagged, 100, 50)
    held.set_trace_callback(None)
    plans = [
        step
        for query in queries
        for *_, step in held.execute(f"EXPLAIN QUERY PLAN {query}")
        if "chats" in step
    ]
    assert len(plans) == 3
    assert "SEARCH chats USING INTEGER PRIMARY KEY (rowid=?)" in plans
    assert sum("chats USING COVERING INDEX" in step for step in plans) == 2


@pytest.mark.parametrize("column", ["chatbot", "persona"])
def test_names_are_read_from_an_index(held: sqlite3.Connection, column: str) -> None:
    queries: list[str] = []
    held.set_trace_callback(queries.append)
    list_names(held, column, 5)
    held.set_trace_callback(None)
    plan = [step for *_, step in held.execute(f"EXPLAIN QUERY PLAN {queries[0]}")]
    assert f"SCAN chats USING COVERING INDEX chats_by_{column}" in plan


def test_more_names_than_wanted_are_none(held: sqlite3.Connection) -> None:
    for name in "cab":
        add_chat(held, "f", 0, conversation(name, ["x"], persona=name))
    assert list_names(held, "persona", 3) == ["a", "b", "c"]
    assert list_names(held, "persona", 2) is None


def count_flagged(held: sqlite3.Connection) -> list[int]:
    return [chat.flagged for chat in list_conversations(held, "", "", False, 0, 9)[1]]


def test_a_turn_that_two_detectors_flag_counts_once(held: sqlite3.Connection) -> None:
    add_chat(held, "f", 0, conversation("a", ["x", "y"]))
    for verdict in (scored("a", 0, [(0, 1)]), scored("a", 0, [(0, 1)], "e"), scored("a", 1)):
        add_verdict(held, "f", 0, verdict)
    assert count_flagged(held) == [1]


def test_flags_count_where_verdicts_come_before_their_conversation(held: sqlite3.Connection) -> None:
    add_verdict(held, "f", 0, unscored("a", 1))
    add_verdict(held, "f", 0, scored("a", 1, [(0, 1)]))
    add_verdict(held, "f", 0, scored("b", 0, [(0, 1)]))
    add_chat(held, "f", 0, conversation("a", ["x", "y"]))
    assert count_flagged(held) == [1]


def test_tables_of_another_layout_are_made_anew(held: sqlite3.Connection) -> None:
    add_chat(held, "f", 0, conversation("a", ["x"]))
    held.executescript("ALTER TABLE chats DROP COLUMN stop; PRAGMA user_version = 1")
    lay_out_tables(held)
    assert count_flagged(held) == []
    add_chat(held, "f", 0, conversation("a", ["x"]))
    assert count_flagged(held) == [0]
