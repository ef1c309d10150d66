from __future__ import annotations

import errno
import hashlib
import os
from pathlib import Path

import platformdirs
import pytest

from hallulab.agents.machine.cache import (
    CHECKSUM_FILE,
    building,
    disk_errors,
    is_whole,
    locate_cache,
    replacing,
    silent,
    write_checksums,
)
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


ABC = hashlib.sha256(b"abc").hexdigest()


@pytest.fixture
def checked(tmp_path: Path) -> Path:
    (tmp_path / "a").write_bytes(b"abc")
    write_checksums(tmp_path, {"a": ABC})
    return tmp_path


def test_a_folder_without_checksums_is_whole_only_by_what_is_expected(tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(b"abc")
    assert not is_whole(tmp_path)
    assert is_whole(tmp_path, {"a": ABC})
    assert is_whole(tmp_path)


def test_untouched_content_is_not_read_again(checked: Path) -> None:
    status = (checked / "a").stat()
    (checked / "a").write_bytes(b"xyz")
    os.utime(checked / "a", ns=(status.st_atime_ns, status.st_mtime_ns))
    assert is_whole(checked)


def test_a_file_with_a_new_time_and_the_old_content_is_checked_again(checked: Path) -> None:
    os.utime(checked / "a", ns=(1, 1))
    assert is_whole(checked)
    assert '"mtime_ns": 1' in (checked / CHECKSUM_FILE).read_text()


def test_changed_content_is_an_error(checked: Path) -> None:
    (checked / "a").write_bytes(b"abcd")
    with pytest.raises(OperationalError, match=f"its sha256 is [0-9a-f]{{64}}, expected {ABC}"):
        is_whole(checked)


def test_a_missing_file_means_not_whole(checked: Path) -> None:
    (checked / "a").unlink()
    assert not is_whole(checked)


def test_a_torn_file_of_checksums_says_nothing(checked: Path) -> None:
    (checked / CHECKSUM_FILE).write_text('{"a": {"si')
    assert not is_whole(checked)
    assert is_whole(checked, {"a": ABC})
