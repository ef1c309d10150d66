"""The file of people's messages, packed."""

from __future__ import annotations

import gzip
from pathlib import Path

from benchmarks.pack_human_turns import packed


def test_packing_keeps_the_messages_alone(tmp_path: Path) -> None:
    path = tmp_path / "people.jsonl"
    path.write_text('{"conversation": "c", "user_turns": ["Hi", "Bye"]}\n')
    assert gzip.decompress(packed(path)).decode() == '{"user_turns": ["Hi", "Bye"]}\n'
