from __future__ import annotations

import hashlib
import os
from pathlib import Path

import pytest

from agents.machine.checksums import SEAL, is_whole, write_seal
from scenarios.errors import OperationalError

ABC = hashlib.sha256(b"abc").hexdigest()


@pytest.fixture
def sealed(tmp_path: Path) -> Path:
    (tmp_path / "a").write_bytes(b"abc")
    write_seal(tmp_path, {"a": ABC})
    return tmp_path


def test_a_folder_without_a_seal_is_whole_only_by_what_is_expected(tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(b"abc")
    assert not is_whole(tmp_path)
    assert is_whole(tmp_path, {"a": ABC})
    assert is_whole(tmp_path)


def test_untouched_content_is_not_read_again(sealed: Path) -> None:
    status = (sealed / "a").stat()
    (sealed / "a").write_bytes(b"xyz")
    os.utime(sealed / "a", ns=(status.st_atime_ns, status.st_mtime_ns))
    assert is_whole(sealed)


def test_a_file_with_a_new_time_and_the_old_content_is_sealed_again(sealed: Path) -> None:
    os.utime(sealed / "a", ns=(1, 1))
    assert is_whole(sealed)
    assert '"mtime_ns": 1' in (sealed / SEAL).read_text()


def test_changed_content_is_an_error(sealed: Path) -> None:
    (sealed / "a").write_bytes(b"abcd")
    with pytest.raises(OperationalError, match=f"its sha256 is [0-9a-f]{{64}}, expected {ABC}"):
        is_whole(sealed)


def test_a_missing_file_means_not_whole(sealed: Path) -> None:
    (sealed / "a").unlink()
    assert not is_whole(sealed)


def test_a_torn_seal_vouches_for_nothing(sealed: Path) -> None:
    (sealed / SEAL).write_text('{"a": {"si')
    assert not is_whole(sealed)
    assert is_whole(sealed, {"a": ABC})
