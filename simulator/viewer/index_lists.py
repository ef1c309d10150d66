"""Lists of conversations from an index, so that a page costs as much as what it shows.

Each query finds its conversations in an index alone, and reads rows of those on the page. Its results come
in one row of JSON: for every row that is fetched, Python would hand over to the thread that grows the index.
"""

from __future__ import annotations

import json
import sqlite3
from typing import Any, NamedTuple


class ListedConversation(NamedTuple):
    """A conversation in a list."""

    number: int
    """Its place in the order in which conversations ended."""
    id: str
    persona: str
    chatbot: str
    seed: int
    turns: int
    stop: str
    """Why it ended."""
    flagged: int
    """Turns that some detector flags."""


def list_conversations(
    held: sqlite3.Connection, chatbot: str, persona: str, flagged: bool, skip: int, most: int
) -> tuple[int, list[ListedConversation]]:
    """Return how many conversations there are of a kind, and some of them, in the order of their ends.

    Args:
        held: the index.
        chatbot: only its conversations; empty: of all.
        persona: only conversations with it; empty: with all.
        flagged: only those with a flagged turn.
        skip: leave out so many.
        most: return so many at most.
    """
    asked = {"chatbot = ?": chatbot, "persona = ?": persona}
    values = [value for value in asked.values() if value]
    terms = [term for term, value in asked.items() if value] + ["hit = 1"] * flagged
    wanted = f"FROM chats WHERE {' AND '.join(terms)}" if terms else "FROM chats"
    (number,) = held.execute(f"SELECT COUNT(*) {wanted}", values).fetchone()
    page = f"SELECT number {wanted} ORDER BY number LIMIT ? OFFSET ?"
    rows = fetch_at_once(
        held,
        ListedConversation._fields,
        f"FROM chats WHERE number IN ({page}) ORDER BY number",
        (*values, most, skip),
    )
    return number, [ListedConversation(*row) for row in rows]


def list_names(held: sqlite3.Connection, column: str, most: int) -> list[str] | None:
    """Return the chatbots or the personas, by name; None: there are more than `most`.

    Args:
        held: the index.
        column: `chatbot` or `persona`.
        most: names.
    """
    assert column in ("chatbot", "persona")
    names = f"SELECT DISTINCT {column} FROM chats ORDER BY 1 LIMIT ?"  # noqa: S608 - a column
    rows = fetch_at_once(held, (column,), f"FROM ({names})", (most + 1,))
    return [name for (name,) in rows] if len(rows) <= most else None


def fetch_at_once(
    held: sqlite3.Connection, columns: tuple[str, ...], query: str, values: tuple[object, ...]
) -> list[Any]:
    """Return the rows of a query in one step.

    Args:
        held: the index.
        columns: what a row has.
        query: the rest of the query, from `FROM`.
        values: its parameters.
    """
    row = f"SELECT json_array({', '.join(columns)}) AS row {query}"
    (found,) = held.execute(f"SELECT json_group_array(json(row)) FROM ({row})", values).fetchone()  # noqa: S608 - ours
    return list(json.loads(found))
