"""Files of rows, whatever they are packed in: the same rows, and what is wrong or is no chat."""

from __future__ import annotations

import gzip
import json
import zipfile
from pathlib import Path
from typing import Any

import pytest
from openpyxl import Workbook

from tests.scenarios.chats.test_rows import read, refuse, write

SEMICOLONS = "question;answer\nHow long is the rental?;Two hours, or less.\n"
LINE = {"prompt": "How long is the rental?", "completion": "Two hours, or less."}
SEMI = ["Read as UTF-8, with columns separated by semicolons."]
TWO_HOURS = {"row-1": [("How long is the rental?", "Two hours, or less.", [])]}


@pytest.mark.parametrize(
    ("name", "held", "notes"),
    [
        ("a.csv", SEMICOLONS.encode(), SEMI),
        ("a.csv", f"\ufeffsep=;\r\n{SEMICOLONS}".encode(), SEMI),
        ("a.csv", f"sep=\t\r\n{SEMICOLONS}".replace(";", "\t").encode(),
         ["Read as UTF-8, with columns separated by tabs."]),
        ("a.tsv", SEMICOLONS.replace(";", "\t").encode(), ["Read as UTF-8, with columns separated by tabs."]),
        ("a.txt", SEMICOLONS.replace(";", "|").encode(), ["Read as UTF-8, with columns separated by bars."]),
        ("a.csv", SEMICOLONS.replace(";", "\t").encode("utf-16"),
         ["Read as UTF-16, with columns separated by tabs."]),
        ("a.csv", SEMICOLONS.replace("\n", "\r").encode(), SEMI),
        ("a.csv.gz", gzip.compress(SEMICOLONS.encode(), mtime=0), SEMI),
        ("a.jsonl.gz", gzip.compress(json.dumps(LINE).encode(), mtime=0), []),
        ("a.json", json.dumps({"data": [LINE]}).encode(), []),
        ("a.json", json.dumps({"data": [LINE]}, indent=1).encode(), []),
    ],
)  # fmt: skip
def test_containers_hold_the_same(name: str, held: bytes, notes: list[str], tmp_path: Path) -> None:
    said, reading = read(write(tmp_path, held, name))
    assert (said, reading.notes) == (TWO_HOURS, notes)


def test_of_excel_the_first_sheet_is_read_and_others_are_named(tmp_path: Path) -> None:
    book = Workbook()
    book.active.title = "May"
    for cells in ([], ["question", "answer", "turn"], ["How long is the rental?", "Two hours, or less.", 1]):
        book.active.append(cells)
    book.create_sheet("June")
    book.save(tmp_path / "a.xlsx")
    said, reading = read(tmp_path / "a.xlsx")
    assert said == TWO_HOURS
    assert reading.notes == ["The sheet 'May' was read, and not 'June'."]


def test_a_damaged_part_of_excel_is_one_sentence(tmp_path: Path) -> None:
    path = tmp_path / "a.xlsx"
    book = Workbook()
    book.active.append(["question", "answer"])
    book.save(path)
    held = bytearray(path.read_bytes())
    with zipfile.ZipFile(path) as archive:
        begin = archive.getinfo("xl/styles.xml").header_offset + 60
    held[begin : begin + 40] = bytes(40)
    path.write_bytes(held)
    assert refuse(path).startswith(": no table of Excel (")


def test_a_column_of_excel_that_is_there_twice_is_refused_and_cells_without_one_are_told(
    tmp_path: Path,
) -> None:
    book = Workbook()
    for cells in (["question", "answer"], ["How long?", "Two hours.", "a note"]):
        book.active.append(cells)
    book.save(tmp_path / "a.xlsx")
    assert read(tmp_path / "a.xlsx")[1].notes == [
        "Rows with cells in a column without a name, which are not read: 1."
    ]
    book.active["C1"] = "answer"
    book.save(tmp_path / "a.xlsx")
    assert refuse(tmp_path / "a.xlsx") == ", row 1: the column 'answer' is there twice. Rename one."


def test_another_encoding_is_refused_with_the_remedy(tmp_path: Path) -> None:
    path = write(tmp_path, "question,answer\nWas kostet es?,Gebühr: 3 €\n".encode("cp1252"))
    assert refuse(path) == (", line 2: the text is not UTF-8. Save the file as UTF-8 (in Excel: CSV UTF-8).")


# Wrong records.


def test_wrong_rows_are_left_out_as_far_as_allowed(tmp_path: Path) -> None:
    path = write(tmp_path, 'question,answer\nA?,B.\nC?,"D" oops\nE?\nG?,H.\n')
    said, reading = read(path, skip_bad=2)
    assert list(said) == ["row-1", "row-2"]
    assert reading.skipped == [
        "line 3: no CSV (',' expected after '\"'). Correct the quotes.",
        "line 4: 1 cells, and the header has 2. Put quotes around cells with commas or line ends.",
    ]
    assert refuse(path, skip_bad=1).startswith(", line 4: 1 cells, and the header has 2.")


@pytest.mark.parametrize("form", ["lines", "list"])
def test_broken_json_is_left_out(form: str, tmp_path: Path) -> None:
    good = '{"question": "A?", "answer": "B."}'
    held = f'{{"question": tru}}\n{good}\n' if form == "lines" else f'[{{"question": tru}},\n{good}]'
    path = write(tmp_path, held, "a.jsonl" if form == "lines" else "a.json")
    said, reading = read(path, skip_bad=1)
    assert (said, len(reading.skipped)) == ({"row-1": [("A?", "B.", [])]}, 1)
    assert ", line 1" in refuse(path)


@pytest.mark.parametrize(
    "good",
    [
        {"messages": [{"role": "user", "content": "A?"}, {"role": "assistant", "content": "B."}]},
        {"conversations": [{"from": "human", "value": "A?"}, {"from": "gpt", "value": "B."}]},
        {"id": "t", "sessionId": "s", "timestamp": "2026-10-01T09:30:00Z", "input": "A?", "output": "B."},
    ],
)
def test_broken_lines_of_logs_and_traces_are_left_out(good: dict[str, Any], tmp_path: Path) -> None:
    path = write(tmp_path, f"{json.dumps(good)}\n{{tru\n", "a.jsonl")
    said, reading = read(path, skip_bad=1)
    assert ([*said.values()], len(reading.skipped)) == ([[("A?", "B.", [])]], 1)
    assert ", line 2" in refuse(path)


# What is no chat.


@pytest.mark.parametrize(
    ("name", "held", "told"),
    [
        ("a.txt", b"[02.05.26, 09:00:00] Ida: Hi\n[02.05.26, 09:01:00] Pier: Yes.",
         "in no format that is known by its content: it looks like a chat that WhatsApp"),
        ("a.txt", b"5/2/26, 9:00 AM - Ida: Is it open?\n", "WhatsApp exported, which does not say who"),
        ("a.xls", b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1" + bytes(600), "an old Excel or Word (.xls, .doc)."),
        ("a.zip", b"PK\x03\x04" + bytes(60), "it is a ZIP archive. Unpack it"),
        ("a.json", b'[{"type": "message", "ts": "1.2", "user": "U1", "text": "Hi"}]',
         "messages that Slack exported, in"),
        ("a.json", '{"question": "A?"}'.encode("utf-16"), "it is JSON in UTF-16. Save it as UTF-8."),
        ("a.json", b'{"speed": 1, "wind": 2}', "its first object has the keys speed, wind, in which no chat"),
        ("a.csv", b"speed;wind\n1;2\n", "it has the columns speed, wind, separated by `;`, in which no"),
        ("a.txt", b"Dear all\n", "it is neither JSON nor a table; it begins with 'Dear all'."),
    ],
)  # fmt: skip
def test_what_is_not_read_is_named_with_the_remedy(name: str, held: bytes, told: str, tmp_path: Path) -> None:
    said = refuse(write(tmp_path, held, name))
    assert told in said
    assert said.endswith(" See docs/own-chats.md.")
