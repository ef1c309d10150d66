"""Only regular files are opened, and nothing is waited for; people may name pipes on the command line."""

from __future__ import annotations

import os
import socket
import threading
from collections.abc import Callable
from pathlib import Path

import pytest

from hallulab.scenarios.files import opening
from hallulab.scenarios.files.opening import open_file, open_given, open_stream, read_file


def put_socket(path: Path) -> None:
    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind(os.path.relpath(path))


def put_link_to_a_pipe_elsewhere(path: Path) -> None:
    outside = path.parent / "outside"
    outside.mkdir()
    os.mkfifo(outside / "pipe")
    path.symlink_to(outside / "pipe")


@pytest.mark.parametrize(
    ("put", "told"),
    [
        (os.mkfifo, "it is a pipe, no file"),
        (Path.mkdir, "Is a directory"),
        (put_socket, "it is a socket, no file"),
        (lambda path: path.symlink_to("/dev/null"), "it is a device, no file"),
        (put_link_to_a_pipe_elsewhere, "it is a pipe, no file"),
        (lambda path: path.symlink_to("nothing"), "No such file or directory"),
    ],
)
def test_something_else_in_a_files_place_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, put: Callable[[Path], None], told: str
) -> None:
    monkeypatch.chdir(tmp_path)  # addresses of sockets are short
    put(tmp_path / "file")
    with pytest.raises(OSError, match=told) as caught:
        open_file(tmp_path / "file")
    assert caught.value.strerror == told


def test_a_file_and_a_link_to_one_are_read(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"text")
    (tmp_path / "link").symlink_to("file")
    assert (read_file(tmp_path / "file"), read_file(tmp_path / "link")) == (b"text", b"text")


def test_a_pipe_that_takes_the_place_of_a_file_after_the_first_look_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "file"
    path.write_bytes(b"text")
    really_open = os.open

    def replace_and_open(*given: object) -> int:
        path.unlink()
        os.mkfifo(path)
        return really_open(*given)  # type: ignore[call-overload, no-any-return]

    monkeypatch.setattr(opening.os, "open", replace_and_open)
    before = len(os.listdir("/proc/self/fd")) if Path("/proc/self/fd").is_dir() else None
    with pytest.raises(OSError, match="it is a pipe, no file"):
        open_file(path)
    if before is not None:
        assert len(os.listdir("/proc/self/fd")) == before


@pytest.fixture
def pipe(tmp_path: Path) -> Path:
    os.mkfifo(tmp_path / "pipe")
    return tmp_path / "pipe"


def test_a_pipe_that_a_person_names_is_read_to_its_end(pipe: Path) -> None:
    writer = threading.Thread(target=pipe.write_bytes, args=(b"seed: 1\n",))
    writer.start()
    with open_given(pipe) as file:
        assert file.read() == b"seed: 1\n"
    writer.join()


def test_a_slow_writer_is_waited_for(pipe: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(opening, "PIPE_S", 0.01)
    reader = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)  # so that the next line does not wait
    writer = os.open(pipe, os.O_WRONLY)
    os.close(reader)
    with open_given(pipe) as file:  # there is nothing in it yet
        os.write(writer, b"late")
        os.close(writer)
        assert file.read() == b"late"


def test_a_pipe_that_nobody_writes_to_is_given_up(pipe: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(opening, "PIPE_S", 0.01)
    with pytest.raises(OSError, match="no program writes to this pipe"):
        open_given(pipe)


def test_a_pipe_that_nobody_reads_is_not_written_to(pipe: Path) -> None:
    with pytest.raises(OSError, match="no program reads from this pipe"):
        open_stream(pipe)
