"""The tables of an index of a run: how lines of its journals get into them, and lists from them.

Each query of a list finds its conversations in an index alone, and reads rows of those on the page. Its
results come in one row of JSON: for every row that is fetched, Python would hand over to the thread that
grows the index.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterable
from typing import Any, NamedTuple

from hallulab.scenarios.transcript import Conversation, Verdict
from hallulab.simulator.metrics.hallucinations import is_answer
from hallulab.simulator.records.journal_lines import build_header, derive_first_try

LAYOUT = 5
"""Version of the tables, and of what is kept in them."""

CLASSIFIED = 2_000
"""Conversations whose replies are classified: rules take 0.2 ms a reply, and the shares of so many show a
chatbot that declines."""

TABLES = ("known", "files", "chats", "verdicts")

_MAKING = """
CREATE TABLE known (name TEXT PRIMARY KEY, value TEXT NOT NULL);
CREATE TABLE files (
    name TEXT PRIMARY KEY, inode INTEGER NOT NULL, done INTEGER NOT NULL, flaws INTEGER NOT NULL,
    ending TEXT NOT NULL
);
CREATE TABLE chats (
    number INTEGER PRIMARY KEY, base TEXT NOT NULL UNIQUE, id TEXT NOT NULL UNIQUE, file TEXT NOT NULL,
    place INTEGER NOT NULL, scenario TEXT NOT NULL, persona TEXT NOT NULL, chatbot TEXT NOT NULL,
    seed INTEGER NOT NULL, depth INTEGER NOT NULL, turns INTEGER NOT NULL, stop TEXT NOT NULL,
    failed INTEGER NOT NULL, answers INTEGER NOT NULL, declines INTEGER NOT NULL, flagged INTEGER NOT NULL,
    hit INTEGER NOT NULL, judged INTEGER NOT NULL
);
CREATE INDEX chats_in_order ON chats (number);
CREATE INDEX chats_by_chatbot ON chats (chatbot);
CREATE INDEX chats_by_persona ON chats (persona, chatbot);
CREATE INDEX chats_hit ON chats (hit);
CREATE INDEX chats_hit_by_chatbot ON chats (hit, chatbot);
CREATE INDEX chats_hit_by_persona ON chats (hit, persona);
CREATE INDEX chats_hit_by_both ON chats (hit, persona, chatbot);
CREATE INDEX chats_of_case ON chats (scenario, persona, seed, depth);
CREATE TABLE verdicts (
    chat TEXT NOT NULL, turn INTEGER NOT NULL, detector TEXT NOT NULL, file TEXT NOT NULL,
    place INTEGER NOT NULL, outcome TEXT NOT NULL, counts INTEGER NOT NULL, spans INTEGER NOT NULL,
    flagged INTEGER NOT NULL, PRIMARY KEY (chat, turn, detector)
) WITHOUT ROWID;
CREATE INDEX verdicts_flagged ON verdicts (chat, turn) WHERE flagged;
"""


def lay_out_tables(db: sqlite3.Connection) -> None:
    """Make the tables, unless they are there; those of another layout go away with all that is in them."""
    if _read_layout(db) == LAYOUT:
        return
    with db:
        db.execute("BEGIN IMMEDIATE")
        if _read_layout(db) == LAYOUT:
            return  # another thread has made them
        for table in TABLES:
            db.execute(f"DROP TABLE IF EXISTS {table}")
        for statement in _MAKING.split(";"):
            db.execute(statement)
        db.execute(f"PRAGMA user_version = {LAYOUT}")


def _read_layout(db: sqlite3.Connection) -> int:
    (layout,) = db.execute("PRAGMA user_version").fetchone()
    return int(layout)


def add_chat(db: sqlite3.Connection, file: str, place: int, chat: Conversation) -> None:
    """Add a conversation, of which the tries after one that succeeded do not count.

    A second line of the same conversation has the evidence that the first one lacks.
    """
    base = derive_first_try(chat.id)
    if db.execute("UPDATE chats SET file = ?, place = ? WHERE id = ?", (file, place, chat.id)).rowcount:
        return
    before = db.execute("SELECT failed FROM chats WHERE base = ?", (base,)).fetchone()
    if before is not None and not before[0]:
        return  # the first that succeeded counts
    db.execute("DELETE FROM chats WHERE base = ?", (base,))
    (last,) = db.execute("SELECT COALESCE(MAX(number), 0) FROM chats").fetchone()
    kinds = [is_answer(turn.reply) for turn in chat.turns] if last < CLASSIFIED else []
    db.execute(
        "INSERT OR IGNORE INTO chats (base, id, file, place, scenario, persona, chatbot, seed, depth, turns, "
        "stop, failed, answers, declines, flagged, hit, judged) "
        "VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, 0, 0, "
        "(SELECT COUNT(*) FROM verdicts WHERE chat = ?2))",
        (
            *(base, chat.id, file, place, chat.scenario, chat.persona, chat.chatbot, chat.seed),
            *(chat.depth(0), len(chat.turns), chat.stop_reason, build_header(chat).failed),
            *(kinds.count(True), kinds.count(False)),
        ),
    )
    _count_flagged(db, chat.id)  # verdicts of another shard may have been read before


def add_verdict(db: sqlite3.Connection, file: str, place: int, verdict: Verdict) -> None:
    """Add a verdict; it only replaces a failed one. `count_judged` counts it."""
    counts = verdict.outcome == "scored" and verdict.localised
    spans = len(verdict.spans or ())
    flagged = bool(verdict.flagged or spans)
    db.execute(
        "INSERT INTO verdicts VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9) ON CONFLICT (chat, turn, detector) "
        "DO UPDATE SET file = ?4, place = ?5, outcome = ?6, counts = ?7, spans = ?8, flagged = ?9 "
        "WHERE outcome = 'failed'",
        (
            *(verdict.conversation, verdict.turn, verdict.detector, file, place, verdict.outcome),
            *(counts, spans, flagged),
        ),
    )
    if flagged:
        _count_flagged(db, verdict.conversation)


def count_judged(db: sqlite3.Connection, ids: Iterable[str]) -> None:
    """Write down how many verdicts conversations have. It takes less than doing so at each verdict."""
    db.executemany(
        "UPDATE chats SET judged = (SELECT COUNT(*) FROM verdicts WHERE chat = ?1) WHERE id = ?1",
        [(id,) for id in ids],
    )


def _count_flagged(db: sqlite3.Connection, id: str) -> None:
    """Write down how many turns of a conversation some detector flags."""
    db.execute(
        "UPDATE chats SET flagged = found.turns, hit = 1 FROM "
        "(SELECT COUNT(DISTINCT turn) AS turns FROM verdicts WHERE chat = ?1 AND verdicts.flagged) AS found "
        "WHERE id = ?1 AND found.turns",
        (id,),
    )


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
    flagged: int


def list_conversations(
    db: sqlite3.Connection, chatbot: str, persona: str, flagged: bool, skip: int, most: int
) -> tuple[int, list[ListedConversation]]:
    """Return how many conversations there are of a kind, and some of them, in the order of their ends.

    Args:
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
    (number,) = db.execute(f"SELECT COUNT(*) {wanted}", values).fetchone()
    page = f"SELECT number {wanted} ORDER BY number LIMIT ? OFFSET ?"
    rows = fetch_at_once(
        db,
        ListedConversation._fields,
        f"FROM chats WHERE number IN ({page}) ORDER BY number",
        (*values, most, skip),
    )
    return number, [ListedConversation(*row) for row in rows]


def list_names(db: sqlite3.Connection, column: str, most: int) -> list[str] | None:
    """Return the chatbots or the personas, by name; None: there are more than `most`."""
    assert column in ("chatbot", "persona")
    names = f"SELECT DISTINCT {column} FROM chats ORDER BY 1 LIMIT ?"  # noqa: S608 - a column
    rows = fetch_at_once(db, (column,), f"FROM ({names})", (most + 1,))
    return [name for (name,) in rows] if len(rows) <= most else None


def fetch_at_once(
    db: sqlite3.Connection, columns: tuple[str, ...], query: str, values: tuple[object, ...]
) -> list[Any]:
    """Return the rows of a query in one step; `query` is the rest of it, from `FROM`."""
    row = f"SELECT json_array({', '.join(columns)}) AS row {query}"
    (found,) = db.execute(f"SELECT json_group_array(json(row)) FROM ({row})", values).fetchone()  # noqa: S608 - ours
    return list(json.loads(found))
