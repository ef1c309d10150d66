"""Tables as text: with commas, semicolons, tabs or bars between columns, in UTF-8 or UTF-16 (`rows`).

A spreadsheet may take a cell for a formula (`is_formula`), and replies are whatever a model wrote. So what we
write has an apostrophe before each such cell, and before each cell that begins with an apostrophe; the column
`escaped` says so, and reading takes the apostrophe away.
Other tables are read as they are. (OWASP, CSV Injection.)
"""

from __future__ import annotations

import codecs
import csv
import io
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import chain, islice
from pathlib import Path
from typing import Any

from hallulab.scenarios.chats.chat_format import (
    ChatFormat,
    FileStart,
    ReadChat,
    encode_json,
    skip_wrong,
    write_lines,
)
from hallulab.scenarios.chats.reading import Reading, is_known
from hallulab.scenarios.chats.record import (
    Marked,
    TurnAbout,
    build_chat_context,
    build_own_conversation,
    read_about,
)
from hallulab.scenarios.chats.row_kinds import find_kind, is_header
from hallulab.scenarios.chats.row_order import read_row_place
from hallulab.scenarios.chats.rows import PlacedRow, read_rows, require_unique
from hallulab.scenarios.chats.values import FormatError, Groups, Value, open_chats
from hallulab.scenarios.errors import UsageError
from hallulab.scenarios.files.json_text import parse_json
from hallulab.scenarios.files.tables import is_formula
from hallulab.scenarios.transcript import Conversation, Turn

HEADER = (
    "conversation", "turn", "user", "reply", "passages", "query", "steps", "spans", "chatbot", "model",
    "about", "escaped", "verdicts", "goal", "act",
)  # fmt: skip
"""The columns that we write."""

_OWN = frozenset(HEADER) - {"verdicts", "goal", "act"}
"""Columns by which a table is known as ours; earlier ones had fewer."""

_YES = "yes"
_START = 4096
_USUAL = ("utf-8", "utf-8-sig")
_NAMES = {",": "commas", ";": "semicolons", "\t": "tabs", "|": "bars"}
"""Separator of columns → its name."""
# A reply with its passages is longer than the 131,072 characters that Python's reader allows.
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
            one.id, str(number), user, reply, encode_json(parts["passages"]),
            encode_json(own.query),
            encode_json(parts["steps"]), encode_json(parts["spans"]), one.chatbot, one.model,
            encode_json(whole), _YES, encode_json(parts["verdicts"]),
            encode_json(own.goal), encode_json(own.act),
        )  # fmt: skip
        yield [f"'{cell}" if cell.startswith("'") or is_formula(cell) else cell for cell in cells]


def format_csv_line(cells: Sequence[str]) -> str:
    """Return the text of a row, without its end."""
    text = io.StringIO()
    csv.writer(text, lineterminator="", quoting=csv.QUOTE_ALL).writerow(cells)
    return text.getvalue()


def recognize(start: FileStart) -> bool:
    """Return whether the file begins with a header that we can read."""
    encoding = find_encoding(start.data)
    text = start.data.decode(encoding, "replace").lstrip()
    if text[:1] in ("{", "["):
        return False
    _, header = find_separator(text.splitlines()[:2])
    return len(header) > 1 and is_header(header, start.mapping)


def write(path: Path, chats: Iterable[Marked], without: frozenset[str]) -> None:
    """Write the header, and the rows of each conversation."""
    rows = (row for marked in chats for row in build_csv_rows(marked, without))
    write_lines(path, map(format_csv_line, chain([HEADER], rows)))


def read(path: Path, reading: Reading) -> Iterator[ReadChat]:
    """Yield the conversations of a file, however its rows are ordered.

    Raises:
        UsageError: the file is no table, or in an encoding that is not known.
        FormatError: a cell is wrong, or a column is missing.
    """
    rows = read_cells(path, reading)
    first = next(rows, None)
    if first is not None and first.cells.keys() >= _OWN:
        yield from _read_own(path, chain([first], rows), reading)
    elif first is not None:
        yield from read_rows(path, chain([first], rows), reading)


def read_cells(path: Path, reading: Reading, *, chats: bool = True) -> Iterator[PlacedRow]:
    """Yield the rows of a file by the names of its header.

    Args:
        path: the file.
        reading: notes how it is written; wrong rows are left out as far as it allows.
        chats: whether the header must have the columns of chats.

    Raises:
        UsageError: it is no table.
        FormatError: the header lacks a column, or has one twice.
    """
    with open_chats(path) as file:
        encoding = find_encoding(file.read(_START))
        file.seek(0)
        text = io.TextIOWrapper(file, encoding=encoding, newline="")  # kept: it closes the file when it goes
        lines = _check_lines(text, path)
        head = list(islice(lines, 2))
        separator, _ = find_separator(head)
        if encoding not in _USUAL or separator != ",":
            written = "UTF-8" if encoding in _USUAL else "UTF-16"
            reading.note(f"Read as {written}, with columns separated by {_NAMES[separator]}.")
        skipped = int(
            bool(head) and head[0].lower().startswith("sep=") and len(head[0].strip()) <= len("sep=;")
        )
        # People who type tables put a space after each separator.
        first = head[skipped] if head[skipped:] else ""
        parts = first.split(separator)[1:] if first[:1] not in ("{", "[") and separator != "\t" else []
        spaced = bool(parts) and all(part.startswith(" ") for part in parts)
        records = _split_records(chain(head[skipped:], lines), separator, skipped, spaced)
        # A table of Markdown has bars at both ends, and dashes below its head.
        framed = separator == "|" and first.startswith("|")
        if framed:
            records = _read_framed(records)
        _, header = next(records, ("", []))
        names = [name.strip() for name in header] if isinstance(header, list) else []
        if not isinstance(header, list):
            raise FormatError(str(header), f"line {1 + skipped}")
        require_unique(names, f"line {1 + skipped}")
        if chats and not set(names) >= _OWN:
            try:
                reading.choose(names, *find_kind(names, reading))
            except FormatError as error:
                raise FormatError(str(error), f"line {1 + skipped}") from error
        for place, cells in records:
            if isinstance(cells, FormatError):
                reading.skip(cells, place)
            elif [cell.strip() for cell in cells] == names:
                reading.count("Lines that repeat the header left out")
            elif len(cells) != len(names) and any(cells):
                wrong = (
                    f"{len(cells)} cells, and the header has {len(names)}. Put quotes around cells with "
                    f"{_NAMES[separator]} or line ends."
                )
                reading.skip(FormatError(wrong, place), place)
            elif any(cells):
                yield PlacedRow(place, int(place.split()[1]), dict(zip(names, cells, strict=True)))


def read_table_values(path: Path, reading: Reading) -> Iterator[Value] | None:
    """Return the rows of a table of anything as objects; None: the file is JSON."""
    with open_chats(path) as file:
        start = file.read(_START)
    if start.decode(find_encoding(start), "replace").lstrip()[:1] in ("{", "["):
        return None
    return (Value(row.place, row.line, row.cells) for row in read_cells(path, reading, chats=False))


def _read_framed(
    records: Iterable[tuple[str, list[str] | FormatError]],
) -> Iterator[tuple[str, list[str] | FormatError]]:
    """Yield the rows of a table of Markdown, without the row of dashes and the spaces in cells."""
    for place, cells in records:
        if isinstance(cells, list):
            cells = [cell.strip() for cell in cells]
            if all(cell.strip(":-") == "" for cell in cells) and any(cells):
                continue
        yield place, cells


def _split_records(
    lines: Iterable[str], separator: str, before: int, spaced: bool
) -> Iterator[tuple[str, list[str] | FormatError]]:
    """Yield the place and the cells of each row, or what is wrong with its quotes.

    Args:
        lines: of the table, from its header on.
        separator: between columns.
        before: lines of the file before these.
        spaced: whether a space after a separator belongs to it.
    """
    reader = csv.reader(lines, strict=True, delimiter=separator, skipinitialspace=spaced)
    while True:
        first = reader.line_num + before + 1
        try:
            cells = next(reader, None)
        except csv.Error as error:
            last = reader.line_num + before
            place = f"line {first}" if last <= first else f"lines {first} to {last}"
            yield place, FormatError(f"no CSV ({error}). Correct the quotes.", place)
            continue
        if cells is None:
            return
        yield f"line {first}", cells


def find_encoding(start: bytes) -> str:
    """Return the encoding of a file by its byte order mark, else UTF-8: others cannot be told apart."""
    if start.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        return "utf-16"
    return "utf-8-sig"


def find_separator(lines: Sequence[str]) -> tuple[str, list[str]]:
    """Return what separates columns, and the names of the header.

    Excel's first line `sep=;` says it. Else it is what parts the first line into most names.

    >>> find_separator(["user;reply, or none"])
    (';', ['user', 'reply, or none'])
    """
    first = lines[0].strip("\r\n ") if lines else ""
    if first.lower().startswith("sep=") and first[4:] in _NAMES:
        return first[4:], _split_header(lines[1] if len(lines) > 1 else "", first[4:])
    headers = {separator: _split_header(lines[0] if lines else "", separator) for separator in _NAMES}
    known = {separator: sum(map(is_known, header)) for separator, header in headers.items()}
    best = max(_NAMES, key=lambda separator: (known[separator], len(headers[separator])))
    return best, headers[best]


def _split_header(line: str, separator: str) -> list[str]:
    try:
        return [name.strip() for name in next(csv.reader([line], delimiter=separator), [])]
    except csv.Error:
        return []


def _check_lines(lines: Iterable[str], path: Path) -> Iterator[str]:
    """Yield the lines of a text; an error of its encoding names the line."""
    number = 0
    try:
        for line in lines:
            number += 1
            yield line
    except UnicodeDecodeError as error:
        wrong = _find_wrong_line(path) or number + 1
        raise UsageError(
            f"{path}, line {wrong}: the text is not UTF-8. Save the file as UTF-8 (in Excel: CSV UTF-8)."
        ) from error


def _find_wrong_line(path: Path) -> int | None:
    """Return the first line that is no UTF-8: the text is decoded in blocks, which know no lines."""
    with open_chats(path) as file:
        for number, line in enumerate(file, start=1):
            try:
                line.decode()
            except UnicodeDecodeError:
                return number
    return None


def _read_own(path: Path, rows: Iterable[PlacedRow], reading: Reading) -> Iterator[ReadChat]:
    """Yield the conversations of rows that we wrote.

    Raises:
        FormatError: a cell was changed, and does not fit.
    """
    with Groups() as groups:
        for row in rows:
            cells = {name: cell.removeprefix("'") for name, cell in row.cells.items()}
            at = read_row_place(cells["turn"], None).at
            if at is None:
                wrong = FormatError(f"{cells['turn'][:40]!r} is no turn. Give its number.", row.place)
                reading.skip(wrong, row.place)
                continue
            groups.add(cells["conversation"], at, row.line, cells)
        for name, parts in groups:
            with skip_wrong(reading, place := f"line {parts[0].line}"):
                conversation = _build_conversation(name, [part.value for part in parts], reading)
                yield ReadChat(f"{path}, {place}", conversation)


def _build_conversation(name: str, rows: list[dict[str, str]], reading: Reading) -> Conversation:
    beside = list[TurnAbout]()
    for row in rows:
        cells = {key: _parse_value(row.get(key) or "[]", key) for key in ("passages", "steps", "verdicts")}
        cells |= {key: _parse_value(row.get(key) or "null", key) for key in ("query", "goal", "act")}
        beside += read_about({"turns": [cells]}).turns or ()
    turns = [
        Turn(index=index, user=row["user"], reply=row["reply"], passages=own.passages, steps=own.steps)
        for index, (row, own) in enumerate(zip(rows, beside, strict=True))
    ]
    first = rows[0]
    named = {"id": name, "chatbot": first["chatbot"], "model": first["model"]}
    kept = _parse_value(first["about"], "about")
    if not isinstance(kept, Mapping):
        raise FormatError("column about: must be an object. Correct it, or delete the column.")
    whole = read_about({**kept, **named})
    given = whole.branch.turn if whole.branch else 0
    about = whole.model_copy(update={"turns": tuple(beside[given:])})
    return build_own_conversation(turns, about, name, reading)


def _parse_value(text: str, column: str) -> Any:
    try:
        return parse_json(text)
    except ValueError as error:
        raise FormatError(
            f"column {column}: not valid JSON ({error}). Correct it, or delete the column about."
        ) from error


INFO = ChatFormat(
    name="csv",
    about="tables: a row for each message and its reply, for each message, or for each conversation",
    endings=(".csv", ".tsv", ".txt"),
    read=read,
    recognize=recognize,
    write=write,
    rank=7,
)
