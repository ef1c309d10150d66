from __future__ import annotations

import errno
from pathlib import Path

import platformdirs
import pytest

from hallulab.agents.machine.cache import building, disk_errors, locate_cache, replacing, silent
from hallulab.scenarios.errors import OperationalError


def test_the_variable_moves_the_cache(tmp_path: Path) -> None:
    assert locate_cache({"HALLULAB_CACHE": str(tmp_path)}) == tmp_path


def test_without_the_variable_it_is_in_the_users_cache() -> None:
    assert locate_cache({"HALLULAB_CACHE": ""}) == platformdirs.user_cache_path("hallulab")


def test_nothing_appears_when_the_build_fails(tmp_path: Path) -> None:
    def build() -> None:
        with replacing(tmp_path / "thing") as folder:
            (folder / "half").write_text("x")
            raise RuntimeError

    with pytest.raises(RuntimeError):
        build()
    assert list(tmp_path.iterdir()) == []


def test_what_was_there_is_replaced(tmp_path: Path) -> None:
    (tmp_path / "thing").mkdir()
    (tmp_path / "thing" / "old").touch()
    with replacing(tmp_path / "thing") as folder:
        (folder / "new").touch()
    assert [path.name for path in (tmp_path / "thing").iterdir()] == ["new"]


def test_a_full_disk_is_one_sentence_with_the_remedy(tmp_path: Path) -> None:
    with (
        pytest.raises(OperationalError, match=r"cannot write .*: No space left on device\. Make room"),
        disk_errors(tmp_path),
    ):
        raise OSError(errno.ENOSPC, "No space left on device")


def test_a_cache_that_cannot_be_a_folder_is_said(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with (
        pytest.raises(OperationalError, match="set HALLULAB_CACHE"),
        building(tmp_path / "file" / "x", silent),
    ):
        raise AssertionError
