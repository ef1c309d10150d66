"""CSV: a row for each message and the reply to it.

A spreadsheet may take a cell for a formula (`is_formula`), and replies are whatever a model wrote. So what we
write has an apostrophe before each such cell, and before each cell that begins with an apostrophe; the column
`escaped` says so, and reading takes the apostrophe away.
Files without that column are read as they are. (OWASP, CSV Injection.)
"""

from __future__ import annotations

import csv
import io
import json
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import chain
from pathlib import Path
from typing import Any

from hallulab.scenarios.chats.chat_format import ChatFormat, FileStart, ReadChat, write_lines
from hallulab.scenarios.chats.otel import parse_timestamp
from hallulab.scenarios.chats.reading import NAMES, Reading, fold_name
from hallulab.scenarios.chats.record import (
    CHATBOT,
    MODEL,
    ChatContext,
    Marked,
    TurnAbout,
    add_topic,
    build_chat_context,
    build_conversation,
    read_about,
)
from hallulab.scenarios.chats.turns import build_passages, extract_evidence
from hallulab.scenarios.chats.values import FormatError, GroupedPart, Groups
from hallulab.scenarios.errors import UsageError
from hallulab.scenarios.files.csv_cells import is_formula
from hallulab.scenarios.files.data_files import open_to_read
from hallulab.scenarios.files.json_text import parse_json
from hallulab.scenarios.transcript import Conversation, Turn

FIELDS = ("user", "reply", "passages", "session", "turn", "time", "topic", "chatbot", "model")
"""What is looked for in tables that we did not write."""

HEADER = (
    "conversation", "turn", "user", "reply", "passages", "query", "steps", "spans", "chatbot", "model",
    "about", "escaped",
)  # fmt: skip
"""The columns that we write."""

_YES = "yes"
csv.field_size_limit(sys.maxsize)


def build_csv_rows(marked: Marked, without: frozenset[str]) -> Iterator[list[str]]:
    """Yield the rows of a conversation; messages that it was given come first."""
    one = marked.conversation
    beside = build_chat_context(marked, without)
    whole = beside.model_dump(mode="json", exclude={"turns", "id", "chatbot", "model"})
    given = one.given
    turns = [
        *((given[place].text, given[place + 1].text, TurnAbout()) for place in range(0, len(given), 2)),
        *((turn.user, turn.reply, own) for turn, own in zip(one.turns, beside.turns or (), strict=True)),
    ]
    for number, (user, reply, own) in enumerate(turns):
        parts = own.model_dump(mode="json")
        cells = (
            one.id, str(number), user, reply, _convert_to_json(parts["passages"]),
            _convert_to_json(own.query),
            _convert_to_json(parts["steps"]), _convert_to_json(parts["spans"]), one.chatbot, one.model,
            _convert_to_json(whole), _YES,
        )  # fmt: skip
        yield [f"'{cell}" if cell.startswith("'") or is_formula(cell) else cell for cell in cells]


def format_csv_line(cells: Sequence[str]) -> str:
    """Return the text of a row, without its end."""
    text = io.StringIO()
    csv.writer(text, lineterminator="", quoting=csv.QUOTE_ALL).writerow(cells)
    return text.getvalue()


def is_csv(first_line: str) -> bool:
    """Return whether a line is the header of a file that we can read."""
    try:
        names = {fold_name(name) for name in next(csv.reader([first_line]), [])}
    except csv.Error:
        return False
    return all(names & set(map(fold_name, NAMES[field])) for field in ("user", "reply"))


def recognize(start: FileStart) -> bool:
    """Return whether the file begins with a header that we can read."""
    text = start.data.decode("utf-8-sig", "replace").lstrip()
    return text[:1] not in ("{", "[") and is_csv(text.partition("\n")[0])


def write(path: Path, chats: Iterable[Marked], without: frozenset[str]) -> None:
    """Write the header, and the rows of each conversation."""
    rows = (row for marked in chats for row in build_csv_rows(marked, without))
    write_lines(path, map(format_csv_line, chain([HEADER], rows)))


def read(path: Path, reading: Reading) -> Iterator[ReadChat]:
    """Yield the conversations of a file, however its rows are ordered.

    Raises:
        UsageError: the file is no CSV in UTF-8, or lacks a column.
        FormatError: a cell is wrong.
    """
    with Groups() as groups:
        for number, (line, row) in enumerate(_read_rows(path, reading)):
            name = row.get("session") or row.get("conversation") or f"row-{number + 1}"
            groups.add(name, _read_order(row.get("turn") or row.get("time"), line), line, row)
        for name, rows in groups:
            _require_whole_order(name, rows)
            try:
                conversation = _build_conversation(name, [row.value for row in rows])
                yield ReadChat(f"{path}, line {rows[0].line}", conversation)
            except FormatError as error:
                raise FormatError(str(error), f"line {rows[0].line}") from error


def _read_order(cell: str | None, line: int) -> float:
    """Return the place of a row in its conversation; 0 where the file gives none.

    Raises:
        FormatError: it is neither a number nor a time, so the order is not known.
    """
    if not cell or not cell.strip():
        return 0.0
    place = parse_timestamp(cell.strip())
    if place is None:
        raise FormatError(
            f"{cell[:40]!r} is no turn or time by which rows are ordered. Give a number or a time such as "
            "2026-10-01T09:30:00, or delete the column: then rows stand in their order.",
            f"line {line}",
        )
    return place


def _require_whole_order(name: str, rows: Sequence[GroupedPart]) -> None:
    """Raise FormatError if some rows of a conversation have a turn or time, and others have none."""
    lacking = [row.line for row in rows if not (row.value.get("turn") or row.value.get("time") or "").strip()]
    if 0 < len(lacking) < len(rows):
        raise FormatError(
            f"other rows of the conversation {name[:40]!r} have a turn or time, and this one has none. Give "
            "it one, or delete the column: then rows stand in their order.",
            f"line {lacking[0]}",
        )


def _read_rows(path: Path, reading: Reading) -> Iterator[tuple[int, dict[str, str]]]:
    """Yield (line, cells by our name of the column) of each row."""
    with open_to_read(path) as file:
        reader = csv.reader(_decode_lines(file, path), strict=True)
        at = 1
        try:
            header = [name.strip() for name in next(reader, [])]
            columns = _locate_columns(path, header, reading)
            at = reader.line_num + 1
            for cells in reader:
                if len(cells) != len(header) and cells:
                    raise UsageError(
                        f"{path}, line {at}: {len(cells)} cells, and the header has {len(header)}. Put "
                        "quotes around cells with commas or line ends."
                    )
                if cells:
                    found = {name: cells[place] for name, place in columns.items()}
                    escaped = "escaped" in header
                    yield at, {key: _strip_quote(cell) if escaped else cell for key, cell in found.items()}
                at = reader.line_num + 1
        except csv.Error as error:
            raise UsageError(f"{path}, line {at}: no CSV ({error}). Correct the quotes.") from error


def _decode_lines(lines: Iterable[bytes], path: Path) -> Iterator[str]:
    for number, line in enumerate(lines, start=1):
        try:
            yield line.decode("utf-8-sig" if number == 1 else "utf-8")
        except UnicodeDecodeError as error:
            raise UsageError(
                f"{path}, line {number}: the text is not UTF-8. Save the file as UTF-8."
            ) from error


def _locate_columns(path: Path, header: list[str], reading: Reading) -> dict[str, int]:
    """Return where the columns are, by our name for them."""
    if set(HEADER) <= set(header):
        return {name: header.index(name) for name in HEADER}
    try:
        chosen = reading.choose(header, *FIELDS)
    except FormatError as error:
        raise FormatError(str(error), "line 1") from error
    found = {field: header.index(name) for field, name in chosen.items()}
    for field in ("user", "reply"):
        if field not in found:
            raise UsageError(
                f"{path}, line 1: no column {' or '.join(NAMES[field])} among {', '.join(header)}. "
                f"{_advise(header)}"
            )
    if found["user"] == found["reply"]:
        raise UsageError(f"{path}, line 1: one column is message and reply. Give each its own.")
    return found


def _advise(header: Sequence[str]) -> str:
    """Return the remedy for a header without a column that is needed."""
    if len(header) == 1 and any(separator in header[0] for separator in ";\t"):
        return "Separate columns by commas."
    return "Name the columns in a header."


def _strip_quote(cell: str) -> str:
    return cell.removeprefix("'")


def _build_conversation(name: str, rows: list[dict[str, str]]) -> Conversation:
    turns = [_turn(index, row) for index, row in enumerate(rows)]
    first = rows[0]
    chatbot, model = first.get("chatbot") or CHATBOT, first.get("model") or MODEL
    if not first.get("about"):
        return build_conversation(turns, ChatContext(id=name, chatbot=chatbot, model=model), name)
    whole = read_about({**_parse_object(first["about"]), "id": name, "chatbot": chatbot, "model": model})
    given = whole.branch.turn if whole.branch else 0
    queries = [_parse_value(row.get("query") or "null", "query") for row in rows]
    own = [
        TurnAbout(query=query, passages=turn.passages, steps=turn.steps)
        for query, turn in list(zip(queries, turns, strict=True))[given:]
    ]
    return build_conversation(turns, whole.model_copy(update={"turns": tuple(own)}), name)


def _turn(index: int, row: Mapping[str, str]) -> Turn:
    if row.get("about"):
        beside = read_about(
            {"turns": [{key: _parse_value(row.get(key) or "[]", key) for key in ("passages", "steps")}]}
        )
        (own,) = beside.turns or ()
        return Turn(index=index, user=row["user"], reply=row["reply"], passages=own.passages, steps=own.steps)
    found = build_passages(extract_evidence(row.get("passages", ""), "passage"))
    turn = Turn(index=index, user=row["user"], reply=row["reply"], passages=found)
    return add_topic([turn], row.get("topic"))[0]


def _parse_value(text: str, column: str) -> Any:
    try:
        return parse_json(text)
    except ValueError as error:
        raise FormatError(
            f"column {column}: not valid JSON ({error}). Correct it, or delete the column about."
        ) from error


def _parse_object(text: str) -> Mapping[str, Any]:
    value = _parse_value(text, "about")
    if not isinstance(value, Mapping):
        raise FormatError("column about: must be an object. Correct it, or delete the column.")
    return value


def _convert_to_json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False)


INFO = ChatFormat(
    name="csv",
    about="a row for each message and its reply",
    endings=(".csv",),
    read=read,
    recognize=recognize,
    write=write,
    rank=7,
)
