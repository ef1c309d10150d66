"""What people chat with: the tiny pack."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from hallulab.testing.tiny_pack import make_pack, words_for_vectors


@pytest.fixture
def pack(tmp_path: Path) -> Iterator[Path]:
    with words_for_vectors():
        yield make_pack(tmp_path / "pack")
