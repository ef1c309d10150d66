"""Conversations of rows: of tables and of lists of objects, whatever container they stand in.

A row is a message and the reply to it, or a message alone with who speaks, or a conversation with its list of
messages. Rows of one session are one conversation, in the order of their turns or times, else of the file.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, replace
from functools import lru_cache
from itertools import chain
from math import isnan
from pathlib import Path
from typing import Any, Literal, NamedTuple

from hallulab.scenarios.chats.cells import count_words, holds_words, is_nothing, unpack_cell
from hallulab.scenarios.chats.chat_format import ReadChat, skip_wrong
from hallulab.scenarios.chats.conventions import unpack_text
from hallulab.scenarios.chats.evidence import (
    WORDS,
    FoundEvidence,
    extract_evidence,
    find_other,
    require_words,
)
from hallulab.scenarios.chats.messages import read_reply_beside
from hallulab.scenarios.chats.reading import Reading, fold_name, place_in
from hallulab.scenarios.chats.record import CHATBOT, MODEL, ChatContext, add_topic, build_conversation
from hallulab.scenarios.chats.replies import is_item, read_items
from hallulab.scenarios.chats.row_checks import (
    Identifiers,
    MessageTree,
    check_session,
    check_step,
    check_turns,
    is_reversed,
)
from hallulab.scenarios.chats.row_kinds import (
    ALONE,
    BESIDE,
    DEEPEVAL,
    DIALOGUE,
    EXCHANGE,
    MESSAGE,
    RAGAS,
    WRITTEN_BESIDE,
    Columns,
    choose_columns,
    list_names,
)
from hallulab.scenarios.chats.row_order import check_row_order, read_row_place
from hallulab.scenarios.chats.sessions import count_overlap
from hallulab.scenarios.chats.traces import extract_messages
from hallulab.scenarios.chats.turns import (
    ChatMessageRecord,
    build_turns,
    find_evidence,
    find_hidden,
    note_speakers,
    read_chat_message,
)
from hallulab.scenarios.chats.values import FormatError, Groups, convert_to_text
from hallulab.scenarios.text.wording import format_count, shorten_line
from hallulab.scenarios.transcript import Conversation, Turn

_LAYOUTS_AT_ONCE = 1_000
_ALL = "all"
"""Conversation of all messages of a table, where none is named."""
_MAYBE_PASSAGES = re.compile(
    r"(?:context|passage|document|source|chunk|retriev|evidence)(?!.*(?:id|url|count|score|name|time|len)s?$)",
    re.IGNORECASE,
)
_PLAIN = (("userinput", "response"), ("input", "actualoutput"))
"""Names of message and reply of Ragas and DeepEval, which have texts."""
_MONGO = ("$date", "$oid", "$numberLong")
"""Names by which MongoDB writes the types of values."""
_NO_REPLY = "without a reply"
_NO_USER = "without a message of the user"


class PlacedRow(NamedTuple):
    """A row, and where it stands."""

    place: str
    """`line 7`, `row 7`."""
    line: int
    """The line on which it begins, or its number."""
    cells: Mapping[str, Any]


def require_unique(names: Sequence[str], place: str) -> None:
    """Raise FormatError if a header has a name twice."""
    if doubled := [name for name, count in Counter(names).items() if count > 1 and name]:
        raise FormatError(f"the column {doubled[0]!r} is there twice. Rename one.", place)


def read_rows(path: Path, rows: Iterable[PlacedRow], reading: Reading) -> Iterator[ReadChat]:
    """Yield the conversations of rows, however they are ordered.

    Args:
        path: the file, for errors.
        rows: its rows.
        reading: notes what is taken for what; wrong rows are left out as far as it allows.

    Raises:
        FormatError: a row is wrong, or has no column that is needed.
    """
    choose = lru_cache(_LAYOUTS_AT_ONCE)(lambda names: choose_columns(names, reading))
    left_out, bots = Counter[str](), dict[str, None]()
    with Groups() as groups:
        tree, ids, kept = MessageTree(), Identifiers(), 0
        for number, row in enumerate(rows, start=1):
            try:
                columns = choose(list_names(row.cells, reading))
                if columns.kind in ALONE and (hidden := find_hidden(row.cells)):
                    left_out[f"as {hidden}"] += 1
                    continue
                found = _read_row(row.cells, columns, reading)
                if columns.kind == MESSAGE and any(one["role"] == "assistant" for one in found["said"]):
                    bots[_read_cell(row.cells.get(columns.names["role"])).casefold()] = None
                session = found["session"] or _name_session(columns, number, reading)
                if columns.kind == EXCHANGE:
                    check_step(row.cells)
                if columns.kind != DIALOGUE:
                    tree.add(row.cells, session, unnamed=session == _ALL)
                if columns.kind in ALONE and ids.is_repeated(
                    row.cells, session, found["said"], reading, unnamed=session == _ALL
                ):
                    left_out["with a message that stands in another one"] += 1
                    continue
            except FormatError as error:
                reading.skip(FormatError(str(error), row.place), row.place)
                continue
            kept += 1
            groups.add(session, found["order"][2] or 0.0, row.line, {**found, "place": row.place})
        if left_out and not kept:
            raise FormatError(
                "no message is shown to the user, as `public`, `private`, `internal` or `deleted` says. "
                "Rename that column if it says something else."
            )
        note_speakers(bots, reading)
        yield from _join_sessions(path, groups, left_out, reading)
    for reason, count in left_out.items():
        reading.note(f"Left out: {format_count(count, 'row')} {reason}.")
    maybe = [name for name in reading.unread if _MAYBE_PASSAGES.search(name)]
    if maybe and "passages" not in reading.taken:
        reading.note(f"No passages were read. If {maybe[0]} has them, say so: --map passages={maybe[0]}.")


def _join_sessions(
    path: Path, groups: Groups, left_out: Counter[str], reading: Reading
) -> Iterator[ReadChat]:
    """Yield the conversation of each session, and count rows that are no turn."""
    unordered, turned, several = list[str](), 0, 0
    for session, parts in groups:
        place = parts[0].value["place"]
        with skip_wrong(reading, place):
            check_session(session, parts, reading)
            turned += is_reversed(parts)
            several += len(parts) > 1
            if not check_row_order(session, parts):
                check_turns(session, parts, unnamed=session == _ALL)
                unordered.append(session)
            joined = _join_rows(session, [part.value for part in parts], left_out)
            yield ReadChat(place_in(path, place), joined)
    if turned and turned == several:
        reading.note(
            "The first message is the assistant's, and the last one the user's: if the file runs from new to "
            "old, sort it from old to new."
        )
    if unordered:
        reading.note(
            f"In {format_count(len(unordered), 'conversation')}, such as {shorten_line(unordered[0])!r}, "
            "rows have the same turn or time: these stand in the order of the file."
        )


def _name_session(columns: Columns, number: int, reading: Reading) -> str:
    """Return the conversation of a row that names none: its own, or that of all messages of a table.

    Raises:
        FormatError: the row is one message, and other rows say of which conversation they are.
    """
    name = columns.names.get("session")
    if columns.kind not in ALONE:
        if name:
            reading.count(f"Rows without a conversation (`{name}`), each of which is one of its own")
        return f"row-{number}"
    if name:
        raise FormatError(f"`{name}` is empty, so the message is of no conversation. Fill it in.")
    reading.note("No name says of which conversation a message is: all are one conversation.")
    return _ALL


def _read_row(cells: Mapping[str, Any], columns: Columns, reading: Reading) -> dict[str, Any]:
    """Return what a row says, as JSON: its messages, its session and order, and what stands beside."""
    found = {field: cells.get(name) for field, name in columns.names.items()}
    found |= {folded: cells[name] for name in cells if (folded := fold_name(name)) in ("type", "name")}
    if columns.numbered:
        found["passages"] = [cells[name] for name in columns.numbered]
    written = _read_written(cells)
    if is_item(cells):
        said = read_items([cells], "row", reading)
    else:
        said = written or _read_said(found, columns, reading)
    if columns.kind == DIALOGUE:
        beside = {name: unpack_cell(one) for name, one in cells.items() if name not in columns.names.values()}
        said += read_reply_beside(beside, beside, said, reading)
    for one in said:
        if one.evidence and not is_item(cells) and not written:
            name = columns.names[columns.kind[0] if columns.kind != MESSAGE else "text"]
            reading.take("passages", f"{name} ({'tool results' if one.role == 'tool' else 'context'})")
    evidence = list[FoundEvidence]()
    if not written:
        evidence = _read_passages(found.get("passages"), columns, reading)
        evidence = evidence or _find_beside(cells, found, reading)
    # Evidence in the row of a user's message is that of the reply after it.
    last = next((at for at in reversed(range(len(said))) if said[at].role == "assistant"), len(said) - 1)
    if said and evidence:
        said[last] = replace(said[last], evidence=(*said[last].evidence, *evidence))
    about = {field: _read_cell(found.get(field)) or None for field in (*BESIDE, "time")}
    in_order = columns.kind != DIALOGUE or about["session"] is not None
    return {
        **{field: about[field] for field in ("session", "topic", "chatbot", "model")},
        "order": read_row_place(about["turn"], about["time"]) if in_order else (None, "", None, ""),
        "kind": columns.kind,
        "written": bool(written),
        "said": [asdict(one) for one in said],
    }


def _read_written(cells: Mapping[str, Any]) -> list[ChatMessageRecord]:
    """Return the message and the reply of a row that we wrote, as they are; nothing for another row."""
    names = next((own for own in (RAGAS, DEEPEVAL) if cells.keys() == {*own, *WRITTEN_BESIDE}), None)
    asked, replied, given = (cells[name] for name in names) if names else (None, None, None)
    if not isinstance(given, list) or not all(isinstance(one, str) for one in (asked, replied, *given)):
        return []
    evidence = tuple(FoundEvidence(one, "passage") for one in given)
    return [ChatMessageRecord("user", str(asked)), ChatMessageRecord("assistant", str(replied), evidence)]


def _read_said(found: Mapping[str, Any], columns: Columns, reading: Reading) -> list[ChatMessageRecord]:
    """Return the messages of a row.

    Raises:
        FormatError: one is none, or nobody knows who speaks.
    """
    if columns.kind == EXCHANGE:
        names, cells = (columns.names["user"], columns.names["reply"]), (found["user"], found["reply"])
        plain = tuple(map(fold_name, names)) in _PLAIN
        inner = cells if plain else tuple(map(unpack_text, cells))
        # Where both are JSON, a text in quotes is: `"Yes."`.
        user, reply = inner if all(one is not cell for one, cell in zip(inner, cells, strict=True)) else cells
        asked = _read_words(user, "user", names[0], plain=plain)
        replied = _read_words(reply, "assistant", names[1], plain=plain)
        # A reply may come with the dialogue before it, and the dialogue with the reply.
        last = max((place for place, one in enumerate(replied) if one.role == "user"), default=-1)
        replied = replied[last + 1 :]
        if asked and replied and (asked[-1].role, asked[-1].text) == ("assistant", replied[-1].text):
            del asked[-1]
        return [*asked, *replied]
    if columns.kind == MESSAGE:
        given = found["text"]
        content = unpack_cell(given)
        is_parts = isinstance(content, Mapping) and (isinstance(given, Mapping) or "parts" in content)
        if not is_parts and not (isinstance(content, list) and holds_words(content)):
            content = _read_cell(given)
        about = {key: found[key] for key in ("type", "name") if key in found}
        return read_chat_message({**about, "role": _read_cell(found["role"]), "content": content}, "row")
    name = columns.names["messages" if columns.kind == DIALOGUE else "text"]
    listed = unpack_cell(found["messages" if columns.kind == DIALOGUE else "text"])
    if is_item(listed):
        return read_items([listed], name, reading)
    said = extract_messages(listed, "user") if isinstance(listed, list | Mapping) else []
    if not said and name == "user_input" and isinstance(listed, str):  # of Ragas, with or without a reply
        raise FormatError(
            "`user_input` has one message, and no column has the reply. Name it: --map reply=NAME."
        )
    if not said and not is_nothing(listed):
        told = shorten_line(_read_cell(listed))[:60]
        raise FormatError(
            f"`{name}` is no list of messages: {told!r}. Correct it, or say which column has them, or who "
            "speaks: --map messages=NAME or --map role=NAME."
            if columns.kind == DIALOGUE
            else f"`{name}` does not say who speaks: {told!r}. Say which column does: --map role=NAME."
        )
    return said


def _read_words(
    value: Any, role: Literal["user", "assistant"], name: str, *, plain: bool
) -> list[ChatMessageRecord]:
    """Return the message in a cell, or the dialogue up to it.

    Args:
        value: the cell.
        role: who speaks in a text alone.
        name: that of its column.
        plain: whether a text is a message even where it looks like JSON, unless it is a dialogue.

    Raises:
        FormatError: it is an object or a list in which no message is known.
    """
    found = value if plain and find_other(value) != "messages" else unpack_cell(value)
    if isinstance(found, Mapping) or (isinstance(found, list) and holds_words(found)):
        said = extract_messages(found, role)
        if not said and found:
            raise FormatError(
                f"`{name}` is an object or a list in which no message is known: "
                f"{shorten_line(_read_cell(value))[:60]!r}. Give the text alone, or name another column."
            )
        return said
    text = _read_cell(value)
    return [ChatMessageRecord(role, text)] if text.strip() else []


def _read_passages(value: Any, columns: Columns, reading: Reading) -> list[FoundEvidence]:
    """Return the passages in a cell; DeepEval joins them by bars where it writes tables."""
    if is_nothing(value):
        return []
    found, names = unpack_cell(value), columns.names
    if other := find_other(found):
        reading.drop("passages", names["passages"], f"has {other}, and no passages")
        return []
    if isinstance(found, Mapping) and all(isinstance(one, str) for one in found.values()):
        known = any(fold_name(name) in WORDS for name in found)
        if not known and all(count_words(one) > 2 for one in found.values()):
            found = [{"source": name, "text": text} for name, text in found.items()]
    deepeval = fold_name(names["passages"]), fold_name(names.get("reply", ""))
    if isinstance(found, str) and "|" in found and deepeval == ("retrievalcontext", "actualoutput"):
        found = found.split("|")
        reading.note(f"`{names['passages']}`: passages are separated by bars, as DeepEval writes them.")
    given = [one for one in extract_evidence(found, "passage") if not is_nothing(one.text)]
    require_words(given, names["passages"])
    return given


def _find_beside(cells: Mapping[str, Any], found: Mapping[str, Any], reading: Reading) -> list[FoundEvidence]:
    """Return the passages in an object that has the reply or the message, or in the row's `metadata`."""
    places = {"reply": found.get("reply"), "user": found.get("user"), "metadata": cells.get("metadata")}
    for what, cell in places.items():
        value = unpack_cell(cell)
        if isinstance(value, Mapping) and (given := find_evidence(value, beside=True)):
            reading.take("passages", f"{what} (context)")
            return list(given)
    return []


def _read_cell(value: Any) -> str:
    """Return a cell as text; that of a missing value is empty."""
    if value is None or (isinstance(value, float) and isnan(value)):
        return ""
    if isinstance(value, Mapping) and len(value) == 1 and next(iter(value)) in _MONGO:
        return _read_cell(*value.values())
    return convert_to_text(value)


def _join_rows(session: str, rows: Sequence[Mapping[str, Any]], left_out: Counter[str]) -> Conversation:
    """Return the conversation of the rows of a session, in order; count rows that are no turn."""
    said = [list(map(_revive, row["said"])) for row in rows]
    turns = list[Turn]()
    if all(tuple(row["kind"]) in ALONE for row in rows):
        turns += build_turns(chain.from_iterable(said))
    else:
        for row, own in zip(rows, said, strict=True):
            found = add_topic(build_turns(own, as_said=row["written"]), row["topic"])
            # A row may repeat the dialogue before it; its last turn is new.
            words = [
                [(turn.user.strip(), turn.reply.strip()) for turn in one]
                for one in (turns[-len(found) :], found[:-1])
            ]
            turns += found[count_overlap(*words) :]
            if not found and own:
                left_out[_NO_REPLY if any(one.role == "user" for one in own) else _NO_USER] += 1
    first = rows[0]
    about = ChatContext(id=session, chatbot=first["chatbot"] or CHATBOT, model=first["model"] or MODEL)
    return build_conversation(turns, about, session)


def _revive(said: Mapping[str, Any]) -> ChatMessageRecord:
    evidence = tuple(FoundEvidence(**one) for one in said["evidence"])
    return ChatMessageRecord(said["role"], said["text"], evidence)
