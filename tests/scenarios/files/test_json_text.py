"""JSON: refused from files, repaired from endpoints, and written as lines."""

from __future__ import annotations

import json
import os
import re
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hallulab.scenarios.errors import OperationalError, UsageError
from hallulab.scenarios.files.json_text import (
    MAX_DEPTH,
    LineWriter,
    find_unwritable,
    is_unfinished,
    parse_json,
    read_json,
    read_lines,
)

VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=20,
)


@pytest.mark.parametrize(
    ("text", "flaw"),
    [
        ("NaN", "a number that is not finite"),
        ('{"calls": [{}, {"latency_s": Infinity}]}', "calls.1.latency_s: a number that is not finite"),
        ("[1, -1e999]", "1: a number that is not finite"),
        (f"[{10**308}]", "a number of 309 digits is too large"),
        ("1" * 5000, "a number of 5000 digits is too large"),
        ('{"reply": "a\\ud800b"}', "reply: half of a character (\\ud800)"),
        ('{"a\\udfff": 1}', "a\\udfff: half of a character (\\udfff)"),
        ('{"a": 1, "b": 2, "a": 3}', "the key a occurs twice"),
        (f'{{"{"k" * 999}": NaN}}', f"{'k' * 199}…: a number that is not finite"),
        (f'{{"{"k" * 999}": 1, "{"k" * 999}": 1}}', f"the key {'k' * 199}… occurs twice"),
        ("[" * 101 + "]" * 101, "more than 100 levels of brackets"),
        ('{"a":' * 101 + "1" + "}" * 101, "more than 100 levels of brackets"),
        ("[" * 200_000, "more than 100 levels of brackets"),
    ],
)
def test_what_not_every_program_reads_is_refused(text: str, flaw: str) -> None:
    with pytest.raises(ValueError, match=f"^{re.escape(flaw)}$"):
        parse_json(text)


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ('"\\ud83d\\ude00"', "\N{GRINNING FACE}"),
        (f"[{10**308 - 1}, 1.7e308]", [10**308 - 1, 1.7e308]),
        (f'"{"7" * 400}"', "7" * 400),
    ],
)
def test_what_only_looks_like_it_is_read(text: str, value: Any) -> None:
    assert parse_json(text) == value


def test_a_hundred_levels_are_read() -> None:
    value = parse_json("[" * 100 + "]" * 100)
    for _ in range(99):
        (value,) = value
    assert value == []


@pytest.mark.parametrize("number", [10**308, -(10**308)])
def test_a_whole_number_of_a_flag_that_is_no_float_is_refused(number: int) -> None:
    assert find_unwritable({"seed": [number]}) == (("seed", 0), "a number that is too large")


@pytest.mark.parametrize(
    ("text", "unfinished"),
    [
        ('{"a": "x', True),
        ('{"a": "x\\', True),
        ('{"a": "}"', True),
        ('{"a": [1, 2]', True),
        ('{"a": 1', True),
        ('{"a": "{"}', False),
        ('{"a": 1}{"b": 2}', False),
        ('{"a": 1,}', False),
        ("", False),
    ],
)
def test_a_string_or_a_bracket_that_is_open_makes_it_unfinished(text: str, unfinished: bool) -> None:
    assert is_unfinished(text) == unfinished


@given(st.dictionaries(st.text(), VALUES), st.integers(min_value=1))
def test_every_beginning_of_an_object_is_unfinished_and_the_whole_is_not(
    value: dict[str, Any], cut: int
) -> None:
    text = json.dumps(value)
    assert is_unfinished(text[: cut % len(text) or 1])
    assert not is_unfinished(text)
    assert parse_json(text) == value


UNSAFE_VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(st.characters()),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(st.characters()), inner, max_size=4),
    max_leaves=20,
)


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ('{"a": [1, 2.5, "x", true, null]}', {"a": [1, 2.5, "x", True, None]}),
        ('["a\\ud800b", {"\\udfff": 1}]', ["a\ufffdb", {"\ufffd": 1}]),
        ('"\\ud83d\\ude00"', "😀"),
        ("[NaN, Infinity, -Infinity, 1e999]", [None, None, None, None]),
        (f"[{'9' * 309}, -{'9' * 5_000}, {'1' + '0' * 300}]", [None, None, 10**300]),
        (b'"\xed\xa0\x80"', "\ufffd"),
    ],
)
def test_what_is_read(text: str | bytes, value: Any) -> None:
    assert read_json(text) == value


def test_every_text_and_key_is_cleaned() -> None:
    assert read_json('{"a": ["b", {"c": "d"}]}', str.upper) == {"A": ["B", {"C": "D"}]}


@pytest.mark.parametrize("depth", [MAX_DEPTH + 1, 5_000, 200_000])
def test_deep_nesting_is_no_value(depth: int) -> None:
    for text in ("[" * depth, "[" * depth + "]" * depth, '{"a":' * depth + "1" + "}" * depth):
        with pytest.raises(ValueError, match=r".") as caught:
            read_json(text)
        assert not isinstance(caught.value, RecursionError)


def test_as_deep_as_it_may_be() -> None:
    text = "[" * MAX_DEPTH + "]" * MAX_DEPTH
    assert json.dumps(read_json(text)) == text


@given(UNSAFE_VALUES)
def test_what_was_read_can_be_written_and_read_again(value: Any) -> None:
    read = read_json(json.dumps(value))
    written = json.dumps(read, ensure_ascii=False, allow_nan=False).encode()
    assert json.loads(written) == read


@pytest.mark.parametrize(
    ("content", "lines"),
    [
        (b'{"a":1}\n\n  \n[2]\n', [(1, {"a": 1}), (4, [2])]),
        (b'\xef\xbb\xbf{"a": 1}\r\n2\r\n', [(1, {"a": 1}), (2, 2)]),
    ],
    ids=["blank lines", "byte order mark"],
)
def test_lines_come_with_their_numbers(tmp_path: Path, content: bytes, lines: list[tuple[int, Any]]) -> None:
    path = tmp_path / "a.jsonl"
    path.write_bytes(content)
    assert list(read_lines(path)) == lines


def test_no_file_has_no_lines(tmp_path: Path) -> None:
    assert list(read_lines(tmp_path / "none.jsonl")) == []


def test_a_last_line_without_its_newline_is_read_and_left_as_it_is(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    path = tmp_path / "a.jsonl"
    path.write_bytes(b'1\n{"a": 2}')
    assert list(read_lines(path)) == [(1, 1), (2, {"a": 2})]
    assert (path.read_bytes(), caplog.messages) == (b'1\n{"a": 2}', [])


def test_an_unfinished_last_line_is_passed_over_with_a_warning(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    path = tmp_path / "a.jsonl"
    path.write_bytes(b'1\n{"a": "\xe2\x82')
    assert list(read_lines(path)) == [(1, 1)]
    assert caplog.messages == [
        f"{path}: the last line is unfinished, as a killed command leaves it; it does not count, and whoever "
        "writes to the file removes it."
    ]
    assert path.read_bytes() == b'1\n{"a": "\xe2\x82'


def test_a_pipe_in_the_place_of_a_journal_is_not_waited_for(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "a.jsonl")
    with pytest.raises(UsageError, match=r"a\.jsonl: this is no file\. Put the file there, or delete it\."):
        list(read_lines(tmp_path / "a.jsonl"))


@pytest.mark.parametrize(
    ("bad", "told"),
    [
        (b"{oops}\n3\n", r"not valid JSON .* Correct or delete the line\."),
        (b'{"a": "\xff"}\n3\n', r"the text is not UTF-8\. Save the file as UTF-8\."),
        *((last, "not valid JSON") for last in (b'{"a": 1,}', b'{"a": 1}{"b": 2}', b"notes")),
        (b"\xff\xfe", r"the text is not UTF-8\."),
    ],
)
def test_a_line_that_is_whole_and_no_json_is_named_also_at_the_end(
    tmp_path: Path, bad: bytes, told: str
) -> None:
    path = tmp_path / "a.jsonl"
    path.write_bytes(b"1\n" + bad)
    with pytest.raises(UsageError, match=r"a\.jsonl, line 2: " + told):
        list(read_lines(path))


def test_opening_removes_an_unfinished_line_and_appends_after_it(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    path = tmp_path / "a.jsonl"
    path.write_bytes(b'1\n2\n{"torn": ')
    list(read_lines(path))
    with LineWriter(path) as writer:
        assert path.read_bytes() == b"1\n2\n"
        writer.append("3")
    assert path.read_bytes() == b"1\n2\n3\n"
    read, removed = caplog.messages
    assert removed == read


def test_opening_gives_a_whole_last_line_its_newline(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    path = tmp_path / "a.jsonl"
    path.write_bytes(b'1\n{"a": 2}')
    with LineWriter(path) as writer:
        writer.append("3")
    assert (path.read_bytes(), caplog.messages) == (b'1\n{"a": 2}\n3\n', [])


@pytest.mark.parametrize("length", [65534, 65535, 65536, 65537, 200_000])
@pytest.mark.parametrize(("before", "end"), [(b"1\n", b""), (b"", b""), (b"1\n", b'"')])
def test_a_last_line_may_be_longer_than_a_block(
    tmp_path: Path, length: int, before: bytes, end: bytes
) -> None:
    path = tmp_path / "a.jsonl"
    path.write_bytes(before + b'"' + b"x" * length + end)
    LineWriter(path).close()
    assert path.read_bytes() == before + (b'"' + b"x" * length + end + b"\n" if end else b"")


def test_folders_are_made(tmp_path: Path) -> None:
    path = tmp_path / "deep" / "er" / "a.jsonl"
    with LineWriter(path) as writer:
        writer.append("1")
    assert list(read_lines(path)) == [(1, 1)]


def test_a_place_that_cannot_be_written_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(OperationalError, match=r"cannot write .*a\.jsonl: File exists\."):
        LineWriter(tmp_path / "file" / "a.jsonl")


@pytest.mark.parametrize("fits", [0, 3])
def test_a_full_disk_leaves_whole_lines_only(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, fits: int
) -> None:
    path = tmp_path / "a.jsonl"
    write = os.write

    def full(descriptor: int, data: bytes) -> int:
        if fits == 0:
            raise OSError(28, "No space left on device")
        return write(descriptor, data[:fits])

    with LineWriter(path) as writer:
        writer.append('"first"')
        monkeypatch.setattr(os, "write", full)
        with pytest.raises(OperationalError, match=r"No space left on device\. Earlier lines are intact"):
            writer.append('"second"')
        monkeypatch.undo()
        writer.append('"third"')
    assert path.read_text() == '"first"\n"third"\n'


@settings(deadline=None)  # it waits for the disk
@given(st.lists(st.one_of(st.text(), st.lists(st.text()))), st.integers(0, 40))
def test_what_a_kill_leaves_is_a_prefix(
    tmp_path_factory: pytest.TempPathFactory, values: list[object], torn: int
) -> None:
    path = tmp_path_factory.mktemp("journal") / "a.jsonl"
    with LineWriter(path) as writer:
        for value in values:
            writer.append(json.dumps(value, ensure_ascii=True))
    data = path.read_bytes()
    path.write_bytes(data[: max(0, len(data) - torn)])
    kept = [value for _, value in read_lines(path)]
    assert kept == values[: len(kept)]
    LineWriter(path).close()
    assert [value for _, value in read_lines(path)] == kept
