"""Conversations of rows: of tables and of lists of objects, whatever container they stand in.

A row is a message and the reply to it, or a message alone with who speaks, or a conversation with its list of
messages. Rows of one session are one conversation, in the order of their turns or times, else of the file.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, replace
from itertools import chain
from math import isnan
from pathlib import Path
from typing import Any, Literal, NamedTuple

from hallulab.scenarios.chats.cells import is_nothing, unpack_cell
from hallulab.scenarios.chats.chat_format import ReadChat
from hallulab.scenarios.chats.evidence import FoundEvidence, extract_evidence
from hallulab.scenarios.chats.otel import parse_timestamp
from hallulab.scenarios.chats.reading import NAMES, Reading, place_in
from hallulab.scenarios.chats.record import CHATBOT, MODEL, ChatContext, add_topic, build_conversation
from hallulab.scenarios.chats.traces import extract_messages
from hallulab.scenarios.chats.turns import (
    ChatMessageRecord,
    build_turns,
    read_chat_message,
)
from hallulab.scenarios.chats.values import FormatError, GroupedPart, Groups
from hallulab.scenarios.text.wording import shorten_line
from hallulab.scenarios.transcript import Conversation

_BESIDE = ("session", "turn", "time", "topic", "chatbot", "model")
_EXCHANGE = ("user", "reply", "passages")
_MESSAGE = ("role", "text", "passages")
_DOTTED = re.compile(r"(\d{1,9})\.(\d{1,6})")


class PlacedRow(NamedTuple):
    """A row, and where it stands."""

    place: str
    """`line 7`, `row 7`."""
    line: int
    """The line on which it begins, or its number."""
    cells: Mapping[str, Any]
    """Name → value."""


def read_rows(path: Path, rows: Iterable[PlacedRow], reading: Reading) -> Iterator[ReadChat]:
    """Yield the conversations of rows, however they are ordered.

    Args:
        path: the file, for errors.
        rows: its rows.
        reading: notes what is taken for what; wrong rows are left out as far as it allows.

    Raises:
        FormatError: a row is wrong, or has no column that is needed.
    """
    with Groups() as groups:
        for number, row in enumerate(rows, start=1):
            try:
                found = _read_row(row.cells, reading)
                at = _read_order(found)
            except FormatError as error:
                reading.skip(FormatError(str(error), row.place), row.place)
                continue
            groups.add(found["session"] or f"row-{number}", at, row.line, {**found, "place": row.place})
        for session, parts in groups:
            place = parts[0].value["place"]
            try:
                _check_order(session, parts, reading)
                yield ReadChat(
                    place_in(path, place), _join_rows(session, [part.value for part in parts], reading)
                )
            except FormatError as error:
                reading.skip(FormatError(str(error), error.place or place), place)


def _read_row(cells: Mapping[str, Any], reading: Reading) -> dict[str, Any]:
    """Return what a row says, as JSON: its messages, its session, turn and time, and what stands beside."""
    kind = find_kind(cells, reading)
    chosen = reading.choose(cells, *kind)
    rest = [name for name in cells if name not in chosen.values()]
    chosen = {**chosen, **reading.choose(rest, *_BESIDE)}
    found = {field: cells[name] for field, name in chosen.items()}
    if kind == _EXCHANGE:
        said = [
            *_read_words(found["user"], "user", reading), *_read_words(found["reply"], "assistant", reading)
        ]  # fmt: skip
    elif kind == _MESSAGE:
        message = {"role": found["role"], "content": _read_cell(found["text"])}
        said = read_chat_message(message, chosen["text"])
    else:
        said = extract_messages(unpack_cell(found["messages"]), "user")
    passages = found.get("passages")
    evidence = () if is_nothing(passages) else tuple(extract_evidence(unpack_cell(passages), "passage"))
    last = next((place for place in reversed(range(len(said))) if said[place].role == "assistant"), None)
    if last is not None and evidence:
        said[last] = replace(said[last], evidence=(*said[last].evidence, *evidence))
    return {
        **{field: _read_cell(found.get(field)) or None for field in _BESIDE},
        "alone": kind == _MESSAGE,
        "said": [asdict(one) for one in said],
    }


def find_kind(names: Iterable[str], reading: Reading) -> tuple[str, ...]:
    """Return what a row with these names is: an exchange, a message, or a conversation.

    Raises:
        FormatError: it is none of these.
    """
    chosen = Reading(reading.mapping).choose
    for kind in (_EXCHANGE, _MESSAGE):
        if set(kind[:2]) <= chosen(names, *kind[:2]).keys():
            return kind
    if "messages" in chosen(names, "messages"):
        return ("messages", "passages")
    lacking = "reply" if "user" in chosen(names, "user") else "user"
    raise FormatError(
        f"no column {' or '.join(NAMES[lacking][:8])} among {shorten_line(', '.join(names))}. Name the "
        f"columns in a header, or say which it is: --map {lacking}=NAME."
    )


def _read_words(value: Any, role: Literal["user", "assistant"], reading: Reading) -> list[ChatMessageRecord]:
    """Return the message in a cell, or the dialogue up to it."""
    text, found = _read_cell(value), unpack_cell(value)
    if isinstance(found, list | dict):
        if said := extract_messages(found, role):
            return said
        reading.note(f"Some cells of the {role} are JSON without a known message: kept as they are.")
    return [ChatMessageRecord(role, text)] if text.strip() else []


def _read_cell(value: Any) -> str:
    """Return a cell as text; that of a missing value is empty."""
    if value is None or (isinstance(value, float) and isnan(value)):
        return ""
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def _read_order(row: Mapping[str, Any]) -> float:
    """Return the place of a row in its session; 0 where it has none.

    Raises:
        FormatError: it is neither a number nor a time, so the order is not known.
    """
    if row["session"] is None:
        return 0.0
    if row["turn"] is not None:
        if dotted := _DOTTED.fullmatch(row["turn"].strip()):  # `1.10` stands behind `1.2`
            return int(dotted[1]) + int(dotted[2]) / 1e6
        given = row["turn"]
    elif row["time"] is not None:
        given = row["time"]
    else:
        return 0.0
    place = parse_timestamp(given.strip())
    if place is None:
        raise FormatError(
            f"{given[:40]!r} is no turn or time by which rows are ordered. Give a number or a time such as "
            "2026-10-01T09:30:00, or delete the column: then rows stand in their order."
        )
    return place


def _check_order(session: str, parts: Sequence[GroupedPart], reading: Reading) -> None:
    """Note equal times of a session, which do not say what came first.

    Raises:
        FormatError: some rows of a session have a turn or time, and others have none.
    """
    orders = [part.value["turn"] or part.value["time"] for part in parts]
    lacking = [part for part, order in zip(parts, orders, strict=True) if order is None]
    if 0 < len(lacking) < len(parts):
        raise FormatError(
            f"other rows of the conversation {session[:40]!r} have a turn or time, and this one has none. "
            "Give it one, or delete the column: then rows stand in their order.",
            lacking[0].value["place"],
        )
    if not lacking and len(set(orders)) < len(orders):
        reading.note(
            f"Rows of the conversation {session[:40]!r} have one turn or time: they stand in their order."
        )


def _join_rows(session: str, rows: Sequence[Mapping[str, Any]], reading: Reading) -> Conversation:
    """Return the conversation of the rows of a session, in order."""
    said = [[_revive(one) for one in row["said"]] for row in rows]
    if all(row["alone"] for row in rows):
        turns = list(build_turns(chain.from_iterable(said)))
    else:
        turns = []
        for row, own in zip(rows, said, strict=True):
            found = add_topic(build_turns(own), row["topic"])
            if not found and any(one.role == "user" for one in own):
                reading.note("Rows without a reply were left out.")
            # A row may repeat the dialogue before it.
            turns += found[-1:] if turns else found
    first = rows[0]
    about = ChatContext(id=session, chatbot=first["chatbot"] or CHATBOT, model=first["model"] or MODEL)
    return build_conversation(turns, about, session)


def _revive(said: Mapping[str, Any]) -> ChatMessageRecord:
    evidence = tuple(FoundEvidence(**one) for one in said["evidence"])
    return ChatMessageRecord(said["role"], said["text"], evidence)
