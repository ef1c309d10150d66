"""What processes that were killed left beside a file goes when it is written again."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from hallulab.scenarios.errors import OperationalError
from hallulab.scenarios.files.atomic import (
    make_folder_beside,
    tell_reason,
    write_atomically,
    write_lines,
    write_whole_folder,
)


@pytest.fixture
def ended() -> int:
    """Number of a process that has ended."""
    with subprocess.Popen([sys.executable, "-c", ""]) as process:
        process.wait()
    return process.pid


def write_folder(path: Path) -> None:
    with write_whole_folder(path) as beside:
        (beside / "in").write_text("new")


WAYS = {
    "file": lambda path: write_atomically(path, "new"),
    "lines": lambda path: write_lines(path, ["new"]),
    "folder": write_folder,
}


@pytest.mark.parametrize("write", WAYS.values(), ids=WAYS)
@pytest.mark.parametrize("own", [False, True], ids=["another process", "one with our number"])
def test_a_leftover_of_a_process_that_has_ended_is_removed(
    tmp_path: Path, ended: int, write: Callable[[Path], None], own: bool
) -> None:
    number = os.getpid() if own else ended
    (tmp_path / f".out.{number}.part").mkdir()
    (tmp_path / f".out.{number}.part" / "in").write_text("half")
    write(tmp_path / "out")
    assert [path.name for path in tmp_path.iterdir()] == ["out"]


def test_what_others_write_or_keep_there_stays(tmp_path: Path, ended: int) -> None:
    kept = {f".out.{os.getppid()}.part", f".other.{ended}.part", f".out.{ended}", f"out.{ended}.part"}
    for name in kept:
        (tmp_path / name).write_text("theirs")
    write_atomically(tmp_path / "out", "new")
    assert {path.name for path in tmp_path.iterdir()} == {"out", *kept}


def test_a_folder_beside_is_empty(tmp_path: Path) -> None:
    left = tmp_path / f".out.{os.getpid()}.part"
    left.mkdir()
    (left / "half").touch()
    made = make_folder_beside(tmp_path / "out")
    assert (made, [*made.iterdir()]) == (left, [])


@pytest.mark.parametrize(
    ("error", "told"),
    [
        (OSError(28, "Error writing bytes. Detail: [errno 28] No space left on device"), os.strerror(28)),
        (shutil.Error([("a", "b", "[Errno 28] No space left on device: 'b'")]), os.strerror(28)),
        (OSError("no number"), "no number"),
    ],
)
def test_the_reason_is_the_systems(error: OSError, told: str) -> None:
    assert tell_reason(error) == told


def test_an_error_within_a_new_folder_names_its_place(tmp_path: Path) -> None:
    def write() -> None:
        with write_whole_folder(tmp_path / "out") as beside:
            (beside / "taken").mkdir()
            write_atomically(beside / "taken", "")

    with pytest.raises(OperationalError) as caught:
        write()
    assert str(caught.value) == f"cannot write {tmp_path / 'out' / 'taken'}: Is a directory."
    assert [*tmp_path.iterdir()] == []
