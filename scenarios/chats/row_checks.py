"""Checks on rows of messages: trees, spans and turns of several conversations are no conversation."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Any

from hallulab.scenarios.chats.cells import is_nothing
from hallulab.scenarios.chats.reading import Reading, fold_name, fold_names
from hallulab.scenarios.chats.span_files import ROW_PARENTS, is_span_row
from hallulab.scenarios.chats.values import FormatError, GroupedPart, convert_to_text

_BEFORE = fold_names("parent_message_id parent_uuid parent_message_uuid")
"""Names of the message before a message, in trees of them."""
_OWN_IDS = fold_names("message_id msg_id message_uuid")
_ROUNDED = re.compile(r"\d(?:[.,]\d+)?e\+\d+", re.IGNORECASE)
"""A number as spreadsheets show long ones."""
_IDS = fold_names("id message_id uuid")


def check_step(cells: Mapping[str, Any]) -> None:
    """Raise FormatError if a row with a message and its reply is a step: of Chainlit, or within another."""
    kind = next((one for name, one in cells.items() if fold_name(name) == "type"), None)
    if kind in ("user_message", "assistant_message"):
        raise FormatError(
            f"`type`: {kind!r}: the row is one message, and no message with its reply. Make a table with a "
            "row a message: columns session_id, role, content and time."
        )
    name = _find_parent(cells)
    if name is not None and not is_nothing(cells[name]) and is_span_row(cells):
        raise FormatError(
            f"`{name}`: the row is a step within another one, and no reply. Export the spans as JSON or CSV, "
            "or keep the rows without it."
        )


class MessageTree:
    """The messages of a file that name the message before them: each may have one after it, at most."""

    def __init__(self) -> None:
        self._ids = set[tuple[str, str]]()
        self._before = set[tuple[str, str]]()
        self._twice = set[tuple[str, str]]()
        """Conversation and message before it of messages that are not the only ones there."""
        self._firsts = 0

    def add(self, cells: Mapping[str, Any], session: str, *, unnamed: bool) -> None:
        """Check a message. A ticket, which is no message of the file, may stand before all of them.

        Args:
            cells: of its row.
            session: its conversation.
            unnamed: whether the file names no conversations.

        Raises:
            FormatError: another message has the same one before it, or several of an unnamed one have none.
        """
        name = _find_parent(cells)
        touched = []
        if id := next((name for name in cells if fold_name(name) in _IDS), None):
            touched.append((session, convert_to_text(cells[id])))
            self._ids.add(touched[0])
        if name is None:  # of JSON, the first message may lack it
            return
        if is_nothing(cells[name]):
            self._firsts += 1
        else:
            before = session, convert_to_text(cells[name])
            (self._twice if before in self._before else self._before).add(before)
            touched.append(before)
        # Only of these can it have become true. To look at all for each row takes the square of the time.
        for one in touched:
            if one in self._twice and one in self._ids:
                raise FormatError(
                    f"`{name}`: several messages have {one[1][:40]!r} before them, so they are a tree, and "
                    "no conversation. Keep one branch of it."
                )
        if unnamed and self._firsts > 1 and self._before:
            raise FormatError(
                f"`{name}`: is empty in several rows, so they are of several conversations. Say which column "
                "has these: --map session=NAME."
            )


class Identifiers:
    """Identifiers of the messages of a file: one that is there twice may be a conversation's."""

    def __init__(self) -> None:
        self._said = dict[tuple[str, str], int]()
        """Conversation and identifier → hash of what the message said."""

    def is_repeated(
        self, cells: Mapping[str, Any], session: str, said: Any, reading: Reading, *, unnamed: bool
    ) -> bool:
        """Return whether a message is there a second time; one with other words is noted, and is none.

        Args:
            cells: of its row.
            session: its conversation.
            said: what it says, as JSON.
            reading: is told.
            unnamed: whether the file names no conversations.

        Raises:
            FormatError: the file names no conversations, and its `id` may name them.
        """
        known = (*_OWN_IDS, "id") if unnamed else _OWN_IDS
        name = next((name for name in cells if fold_name(name) in known), None)
        if name is None or is_nothing(cells[name]):
            return False
        key, words = (session, convert_to_text(cells[name])), hash(convert_to_text(said))
        if key not in self._said:
            self._said[key] = words
            return False
        if self._said[key] == words:
            return True
        if unnamed and fold_name(name) == "id":
            raise FormatError(
                f"`{name}`: {key[1][:40]!r} is there several times. If it says of which conversation a "
                f"message is, say so: --map session={name}; else delete that column."
            )
        reading.count(f"Messages with the `{name}` of an earlier one, and other words: both were read")
        return False


def _find_parent(cells: Mapping[str, Any]) -> str | None:
    return next((name for name in cells if fold_name(name) in (*ROW_PARENTS, *_BEFORE)), None)


def check_session(session: str, parts: Sequence[GroupedPart], reading: Reading) -> None:
    """Check that rows are of one conversation, and note if several chatbots speak in it.

    Args:
        session: the conversation.
        parts: its rows, sorted.
        reading: is told.

    Raises:
        FormatError: a spreadsheet has rounded its number, so others may have the same.
    """
    if len(parts) > 1 and _ROUNDED.fullmatch(session):
        raise FormatError(
            f"{session!r} is a number that a spreadsheet has rounded, so its rows may be of several "
            "conversations. Export that column as text."
        )
    for field in ("chatbot", "model"):
        if len({part.value[field] for part in parts} - {None}) > 1:
            reading.count(f"Conversations whose rows name several {field}s, of which the first counts")


def is_reversed(parts: Sequence[GroupedPart]) -> bool:
    """Return whether rows without turn and time begin with a reply and end with the user's message."""
    ends = [part.value["said"] for part in (parts[0], parts[-1]) if part.value["said"]]
    speakers = [said[place]["role"] for said, place in zip(ends, (0, -1), strict=False)]
    return not parts[0].value["order"][0] and speakers == ["assistant", "user"]


def check_turns(session: str, parts: Sequence[GroupedPart], *, unnamed: bool) -> None:
    """Check that messages with the same turn are a message of the user and then a reply.

    Args:
        session: the conversation.
        parts: its rows, sorted.
        unnamed: whether the file names no conversations.

    Raises:
        FormatError: a reply stands first, or the numbers begin anew where no conversation is named.
    """
    for before, part in pairwise(parts):
        (by, given, *_), (_, also, *_) = before.value["order"], part.value["order"]
        roles = [[said["role"] for said in one.value["said"]] for one in (before, part)]
        if by != "turn" or given != also:
            continue
        if roles == [["assistant"], ["user"]]:
            raise FormatError(
                f"the reply of turn {given[:40]!r} of the conversation {session[:40]!r} stands before the "
                "user's message. Give each message a number of its own, or sort them.",
                part.value["place"],
            )
        if unnamed and roles[0] == roles[1]:
            raise FormatError(
                f"turn {given[:40]!r} is there twice, so the rows are of several conversations. Say which "
                "column has these: --map session=NAME.",
                part.value["place"],
            )
