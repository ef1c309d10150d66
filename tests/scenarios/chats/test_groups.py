"""Groups that the disk has no room for."""

from __future__ import annotations

import pytest

from hallulab.scenarios.chats.values import Groups
from hallulab.scenarios.errors import OperationalError


def fill(pages: int) -> None:
    with Groups() as groups:
        groups._database.execute(f"PRAGMA max_page_count = {pages}")
        for line in range(100):
            groups.add("a", 0.0, line, "x" * 1000)


def test_a_disk_without_room_for_groups_is_one_sentence() -> None:
    with pytest.raises(OperationalError) as caught:
        fill(pages=4)
    assert str(caught.value) == (
        "the system's folder for temporary files cannot hold what was read (database or disk is full). "
        "Free space there, or set TMPDIR to another folder."
    )
