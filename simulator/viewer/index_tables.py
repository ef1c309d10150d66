"""The tables of an index of a run, and how lines of its journals get into them."""

from __future__ import annotations

import sqlite3

from hallulab.scenarios.transcript import Conversation, Verdict
from hallulab.simulator.runs.journals import build_header, derive_first_try

TABLES = """
CREATE TABLE known (name TEXT PRIMARY KEY, value TEXT NOT NULL);
CREATE TABLE files (
    name TEXT PRIMARY KEY, inode INTEGER NOT NULL, done INTEGER NOT NULL, flaws INTEGER NOT NULL
);
CREATE TABLE chats (
    number INTEGER PRIMARY KEY, base TEXT NOT NULL UNIQUE, id TEXT NOT NULL UNIQUE, file TEXT NOT NULL,
    place INTEGER NOT NULL, scenario TEXT NOT NULL, persona TEXT NOT NULL, chatbot TEXT NOT NULL,
    seed INTEGER NOT NULL, depth INTEGER NOT NULL, turns INTEGER NOT NULL, stop TEXT NOT NULL,
    failed INTEGER NOT NULL
);
CREATE INDEX chats_of_case ON chats (scenario, persona, seed, depth);
CREATE TABLE verdicts (
    chat TEXT NOT NULL, turn INTEGER NOT NULL, detector TEXT NOT NULL, file TEXT NOT NULL,
    place INTEGER NOT NULL, outcome TEXT NOT NULL, counts INTEGER NOT NULL, spans INTEGER NOT NULL,
    flagged INTEGER NOT NULL, PRIMARY KEY (chat, turn, detector)
) WITHOUT ROWID;
CREATE INDEX verdicts_flagged ON verdicts (chat, turn) WHERE flagged;
"""


def add_chat(held: sqlite3.Connection, file: str, place: int, chat: Conversation) -> None:
    """Add a conversation, of which the tries after one that succeeded do not count.

    Args:
        held: the index.
        file: name of the journal.
        place: where its line begins.
        chat: it.
    """
    base = derive_first_try(chat.id)
    before = held.execute("SELECT failed FROM chats WHERE base = ?", (base,)).fetchone()
    if before is not None and not before[0]:
        return  # the first that succeeded counts
    held.execute("DELETE FROM chats WHERE base = ?", (base,))
    held.execute(
        "INSERT OR IGNORE INTO chats (base, id, file, place, scenario, persona, chatbot, seed, depth, turns, "
        "stop, failed) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
        (
            *(base, chat.id, file, place, chat.scenario, chat.persona, chat.chatbot, chat.seed),
            *(chat.depth(0), len(chat.turns), chat.stop_reason, build_header(chat).failed),
        ),
    )


def add_verdict(held: sqlite3.Connection, file: str, place: int, verdict: Verdict) -> None:
    """Add a verdict; it only replaces a failed one.

    Args:
        held: the index.
        file: name of the journal.
        place: where its line begins.
        verdict: it.
    """
    counts = verdict.outcome == "scored" and verdict.localised
    spans = len(verdict.spans or ())
    held.execute(
        "INSERT INTO verdicts VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9) ON CONFLICT (chat, turn, detector) "
        "DO UPDATE SET file = ?4, place = ?5, outcome = ?6, counts = ?7, spans = ?8, flagged = ?9 "
        "WHERE outcome = 'failed'",
        (
            *(verdict.conversation, verdict.turn, verdict.detector, file, place, verdict.outcome),
            *(counts, spans, bool(verdict.flagged or spans)),
        ),
    )
