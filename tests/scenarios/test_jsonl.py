from __future__ import annotations

import json
import os
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from scenarios.errors import OperationalError, UsageError
from scenarios.jsonl import LineWriter, read_lines


def test_lines_come_with_their_numbers(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    path.write_bytes(b'{"a":1}\n\n  \n[2]\n')
    assert list(read_lines(path)) == [(1, {"a": 1}), (4, [2])]


def test_no_file_has_no_lines(tmp_path: Path) -> None:
    assert list(read_lines(tmp_path / "none.jsonl")) == []


def test_a_torn_last_line_is_left_out_even_if_it_parses(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    path.write_bytes(b"1\n2")
    assert list(read_lines(path)) == [(1, 1)]


@pytest.mark.parametrize("bad", [b"{oops}\n", b'{"a": "\xff"}\n'])
def test_a_broken_whole_line_is_named(tmp_path: Path, bad: bytes) -> None:
    path = tmp_path / "a.jsonl"
    path.write_bytes(b"1\n" + bad + b"3\n")
    with pytest.raises(UsageError, match=r"a\.jsonl, line 2: not valid JSON .* Repair or delete that line\."):
        list(read_lines(path))


def test_opening_drops_a_torn_tail_and_appends_after_it(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    path.write_bytes(b'1\n2\n{"torn": ')
    with LineWriter(path) as writer:
        assert path.read_bytes() == b"1\n2\n"
        writer.append("3")
    assert path.read_bytes() == b"1\n2\n3\n"


@pytest.mark.parametrize("length", [65535, 65536, 65537, 200_000])
def test_a_torn_tail_may_be_longer_than_a_block(tmp_path: Path, length: int) -> None:
    path = tmp_path / "a.jsonl"
    path.write_bytes(b"1\n" + b"x" * length)
    LineWriter(path).close()
    assert path.read_bytes() == b"1\n"


def test_a_file_of_one_torn_line_becomes_empty(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    path.write_bytes(b"x" * 70_000)
    LineWriter(path).close()
    assert path.read_bytes() == b""


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
        with pytest.raises(OperationalError, match=r"No space left on device\. What was written before"):
            writer.append('"second"')
        monkeypatch.undo()
        writer.append('"third"')
    assert path.read_text() == '"first"\n"third"\n'


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs /dev/full")
def test_the_full_device_is_one_clear_error() -> None:
    with LineWriter(Path("/dev/full")) as writer, pytest.raises(OperationalError, match="No space left"):
        writer.append("1")


@given(st.lists(st.one_of(st.text(), st.integers(), st.lists(st.text()))), st.integers(0, 40))
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
