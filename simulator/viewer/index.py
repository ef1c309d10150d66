"""An index of a run's journals in a file of its own: built once, then only what was added is read.

It holds where each conversation and each verdict stands, and what lists and counts need. So a page of a big
run costs as much as what it shows. The index is in the cache folder, because a run folder may be somebody
else's, and is built again when it does not fit.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import sqlite3
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple, TypeVar

from pydantic import ValidationError

from hallulab.agents.machine.cache import locate_cache
from hallulab.scenarios.datasets.annotations import TurnPlace
from hallulab.scenarios.errors import OperationalError, UsageError
from hallulab.scenarios.files.json_text import digest
from hallulab.scenarios.files.opening import open_file
from hallulab.scenarios.transcript import Conversation, Verdict
from hallulab.simulator.records.folder import RunFolder
from hallulab.simulator.records.journal_lines import build_header
from hallulab.simulator.records.run_files import list_shards
from hallulab.simulator.viewer.index_tables import (
    TABLES,
    ListedConversation,
    add_chat,
    add_verdict,
    count_judged,
    fetch_at_once,
    lay_out_tables,
    list_conversations,
    list_names,
)

LINES_A_STEP = 500
"""Lines that are read at most before what was found is written and others may read it."""

ENDING_BYTES = 4096
"""Bytes before the place up to which a journal was read, by which it is known again: a new file may get the
number of a deleted one."""

_COUNTS = """
SELECT COUNT(*), TOTAL(turns), TOTAL(judged), TOTAL(flagged), (SELECT TOTAL(flaws) FROM files),
COUNT(*) FILTER (WHERE stop = 'error') FROM chats
"""

_RATES = """
SELECT chatbot, detector, SUM(counts), SUM(spans * counts), said.answers, said.declines
FROM verdicts JOIN chats ON chats.id = verdicts.chat JOIN
(SELECT chatbot, SUM(answers) AS answers, SUM(declines) AS declines FROM chats GROUP BY chatbot) AS said
USING (chatbot) GROUP BY chatbot, detector ORDER BY detector, chatbot
"""


@dataclass(frozen=True)
class Counts:
    """How much a run has."""

    conversations: int
    turns: int
    verdicts: int
    """Verdicts on them that count."""
    flagged: int
    """Turns that some detector flags."""
    flaws: int
    """Lines of journals that cannot be read."""
    failed: int = 0
    """Conversations that ended with an error. A run that goes on repeats them."""


class Rate(NamedTuple):
    """The hallucinations of a chatbot by a detector."""

    chatbot: str
    detector: str
    turns: int
    """Turns that it scored and localised."""
    hallucinations: int
    answers: int
    """Replies of the chatbot that answer, scored or not, in the first conversations (`CLASSIFIED`)."""
    declines: int
    """Those that decline, likewise."""

    @property
    def hpt(self) -> float:
        """Hallucinations per such turn, where there is one."""
        return self.hallucinations / self.turns

    @property
    def answered(self) -> float | None:
        """Share of the replies that answer or decline that answers; None: there are none."""
        replies = self.answers + self.declines
        return self.answers / replies if replies else None


class RunIndex:
    """The index of one run folder, in the cache folder or in `base`. It may be read while it grows."""

    def __init__(self, folder: RunFolder, base: Path | None = None) -> None:
        self._folder = folder
        name = digest(str(folder.path.resolve()))[:24]
        self.path = (base or locate_cache() / "viewer") / f"{name}.sqlite"

    def grow(self) -> bool:
        """Read some lines that were added to the journals; return whether there may be more.

        Raises:
            UsageError: experiment.json is damaged.
            OperationalError: the index or a journal cannot be read or written.
        """
        with self._connect() as db:
            db.execute("BEGIN IMMEDIATE")  # what others add meanwhile would be added twice, or be lost
            saved = self._folder.read_experiment()
            made_by = None if saved is None else saved.made_by
            judges = None if saved is None else dict(saved.detectors)
            written = None
            if saved is not None and saved.live is not None and self._folder.conversations.is_file():
                # Such a journal is replaced after each turn.
                written = self._folder.conversations.stat().st_mtime_ns
            made = None if made_by is None else made_by.model_dump(mode="json")
            self._prepare(db, digest([made, judges, *([] if written is None else [written])]))
            for path, place, line in self._read_added(db, self._folder.conversations):
                chat = _parse(Conversation, line)
                if chat is None:
                    self._count_flaw(db, path)
                elif made_by is None or made_by.made(build_header(chat)):
                    add_chat(db, path.name, place, chat)
            more = self._has_more(db, self._folder.conversations)
            judged: set[str] = set()
            for path, place, line in self._read_added(db, self._folder.verdicts):
                verdict = _parse(Verdict, line)
                if verdict is None:
                    self._count_flaw(db, path)
                elif judges is None or judges.get(verdict.detector) == verdict.version:
                    add_verdict(db, path.name, place, verdict)
                    judged.add(verdict.conversation)
            count_judged(db, judged)
            return more or self._has_more(db, self._folder.verdicts)

    def measure_progress(self) -> float:
        """Return the share of the journals' bytes that was read."""
        journals = (self._folder.conversations, self._folder.verdicts)
        whole = sum(path.stat().st_size for journal in journals for path in self._list_files(journal))
        with self._connect() as db:
            (done,) = db.execute("SELECT TOTAL(done) FROM files").fetchone()
        return min(1.0, done / whole) if whole else 1.0

    def count(self, lately: bool = False) -> Counts:
        """Count what was read so far; `lately`: the last counts do, while lines are being read."""
        with self._connect() as db:
            [found] = _recall(db, "counts", _COUNTS, lately)
        return Counts(*map(int, found))

    def rate(self) -> list[Rate]:
        """Return the hallucinations of each chatbot by each detector, by name."""
        with self._connect() as db:
            return [Rate(*row) for row in _recall(db, "rates", _RATES)]

    def list_names(self, column: str, most: int) -> list[str] | None:
        """Return the chatbots or the personas (`hallulab.simulator.viewer.index_tables`)."""
        with self._connect() as db:
            return list_names(db, column, most)

    def list_chats(
        self, chatbot: str = "", persona: str = "", flagged: bool = False, skip: int = 0, most: int = 50
    ) -> tuple[int, list[ListedConversation]]:
        """Return how many conversations there are of a kind, and some (`list_conversations`)."""
        with self._connect() as db:
            return list_conversations(db, chatbot, persona, flagged, skip, most)

    def find_flagged(self, chat: str, turn: int, forward: bool) -> TurnPlace | None:
        """Return the next or the previous flagged turn; None: there is none.

        Args:
            chat: the conversation from which is looked.
            forward: whether the next one is wanted.
        """
        sign, order = (">", "") if forward else ("<", "DESC")
        with self._connect() as db:
            here = db.execute("SELECT number FROM chats WHERE id = ?", (chat,)).fetchone()
            if here is None:
                return None
            row = db.execute(
                f"SELECT verdicts.chat, turn FROM chats JOIN verdicts ON verdicts.chat = chats.id "  # noqa: S608
                f"AND verdicts.flagged WHERE hit = 1 AND number {sign}= ?1 "
                f"AND (number {sign} ?1 OR turn {sign} ?2) ORDER BY number {order}, turn {order} LIMIT 1",
                (here[0], turn),
            ).fetchone()
        return None if row is None else tuple(row)

    def read_chat(self, id: str) -> tuple[Conversation, list[Verdict]] | None:
        """Read a conversation and the verdicts on it; None: the index has no such conversation.

        Raises:
            UsageError: a journal was changed, and not only grew.
            OperationalError: a journal cannot be read.
        """
        with self._connect() as db:
            at = db.execute("SELECT file, place FROM chats WHERE id = ?", (id,)).fetchone()
            if at is None:
                return None
            places = db.execute(
                "SELECT file, place FROM verdicts WHERE chat = ? ORDER BY detector, turn", (id,)
            ).fetchall()
        chat = _parse(Conversation, self._read_at(*at))
        verdicts = [_parse(Verdict, self._read_at(*place)) for place in places]
        if chat is None or chat.id != id or None in verdicts:
            raise UsageError(f"{self._folder.path}: its journals were changed. Delete {self.path}.")
        return chat, [verdict for verdict in verdicts if verdict is not None]

    def list_case(self, chat: str) -> list[ListedConversation]:
        """Return the conversations of all chatbots with the same persona and seed."""
        with self._connect() as db:
            found = fetch_at_once(
                db,
                ListedConversation._fields,
                "FROM chats WHERE (scenario, persona, seed, depth) = (SELECT scenario, persona, seed, depth "
                "FROM chats WHERE id = ?) ORDER BY number",
                (chat,),
            )
            return [ListedConversation(*row) for row in found]

    @contextlib.contextmanager
    def _connect(self) -> Iterator[sqlite3.Connection]:
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            db = sqlite3.connect(self.path, timeout=30)
            try:
                # Pages read the index while it grows.
                db.execute("PRAGMA journal_mode = WAL")
                db.execute("PRAGMA synchronous = OFF")  # it can be built again
                lay_out_tables(db)
                with db:
                    yield db
            finally:
                db.close()
        except (OSError, sqlite3.Error) as error:
            raise OperationalError(f"the index {self.path} cannot be used ({error}). Delete it.") from error

    def _prepare(self, db: sqlite3.Connection, fits: str) -> None:
        """Empty the index unless it is of these journals."""
        before = db.execute("SELECT value FROM known WHERE name = 'fits'").fetchone()
        files = db.execute("SELECT name, inode, done, ending FROM files").fetchall()
        if before == (fits,) and all(self._is_same(*file) for file in files):
            return
        for table in TABLES:
            db.execute(f"DELETE FROM {table}")  # noqa: S608 - one of ours
        db.execute("INSERT INTO known VALUES ('fits', ?)", (fits,))

    def _is_same(self, name: str, inode: int, done: int, ending: str) -> bool:
        """Return whether a journal only grew since it was read."""
        try:
            with open_file(self._folder.path / name) as file:
                return os.fstat(file.fileno()).st_ino == inode and _identify_ending(file, done) == ending
        except OSError:
            return False

    def _list_files(self, journal: Path) -> list[Path]:
        found = list_shards(journal) if self._folder.is_in_shards else [journal]
        return [path for path in found if path.is_file()]

    def _has_more(self, db: sqlite3.Connection, journal: Path) -> bool:
        done = dict(db.execute("SELECT name, done FROM files").fetchall())
        return any(self._ends_behind(path, done.get(path.name, 0)) for path in self._list_files(journal))

    def _ends_behind(self, path: Path, place: int) -> bool:
        """Return whether a whole line stands behind that place."""
        with open_file(path) as file:
            file.seek(place)
            return file.readline().endswith(b"\n")

    def _read_added(self, db: sqlite3.Connection, journal: Path) -> list[tuple[Path, int, bytes]]:
        """Return some whole lines that the index lacks, with their places, and note that they were read."""
        done = dict(db.execute("SELECT name, done FROM files").fetchall())
        found: list[tuple[Path, int, bytes]] = []
        for path in self._list_files(journal):
            if len(found) >= LINES_A_STEP:
                break
            place = done.get(path.name, 0)
            with open_file(path) as file:
                file.seek(place)
                while len(found) < LINES_A_STEP and (line := file.readline()).endswith(b"\n"):
                    if line.strip():
                        found.append((path, place, line))
                    place += len(line)
                if place != done.get(path.name):
                    db.execute(
                        "INSERT INTO files VALUES (?1, ?2, ?3, 0, ?4) "
                        "ON CONFLICT (name) DO UPDATE SET done = ?3, ending = ?4",
                        (path.name, os.fstat(file.fileno()).st_ino, place, _identify_ending(file, place)),
                    )
        return found

    def _count_flaw(self, db: sqlite3.Connection, path: Path) -> None:
        db.execute("UPDATE files SET flaws = flaws + 1 WHERE name = ?", (path.name,))

    def _read_at(self, name: str, place: int) -> bytes:
        path = self._folder.path / name
        try:
            with open_file(path) as file:
                file.seek(place)
                return file.readline()
        except OSError as error:
            raise OperationalError(f"cannot read {path}: {error.strerror}.") from error


def _recall(db: sqlite3.Connection, name: str, query: str, lately: bool = False) -> list[Any]:
    """Return the rows of a query over everything. They are kept until something is read from journals."""
    [(done,)] = db.execute("SELECT TOTAL(done) FROM files").fetchall()
    for (kept,) in db.execute("SELECT value FROM known WHERE name = ?", (name,)).fetchall():
        before, rows = json.loads(kept)
        if lately or before == done:
            return list(rows)
    rows = db.execute(query).fetchall()
    db.execute("INSERT OR REPLACE INTO known VALUES (?, ?)", (name, json.dumps([done, rows])))
    return rows


def _identify_ending(file: BinaryIO, place: int) -> str:
    """Return a hash of the bytes before a place of a file."""
    start = max(0, place - ENDING_BYTES)
    file.seek(start)
    return hashlib.sha256(file.read(place - start)).hexdigest()[:16]


Line = TypeVar("Line", Conversation, Verdict)


def _parse(kind: type[Line], line: bytes) -> Line | None:
    try:
        return kind.model_validate_json(line.removeprefix(b"\xef\xbb\xbf"))
    except ValidationError:
        return None
