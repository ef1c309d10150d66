"""The files of people's messages, packed."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

from benchmarks.pack_human_turns import pack_counts, pack_turns


def test_packing_keeps_the_messages_alone(tmp_path: Path) -> None:
    path = tmp_path / "people.jsonl"
    path.write_text('{"conversation": "c", "user_turns": ["Hi", "Bye"]}\n')
    assert gzip.decompress(pack_turns(path)).decode() == '{"user_turns": ["Hi", "Bye"]}\n'


def chat(*texts: str) -> dict[str, Any]:
    """A conversation as realsim has it."""
    replies = [{"role": "assistant", "content": "How can I help you?"}] * len(texts)
    said = [{"role": "user", "content": text} for text in texts]
    return {"conversation": [one for turn in zip(said, replies, strict=True) for one in turn]}


def test_of_realsim_counts_alone_are_kept_and_a_copied_conversation_counts_once(tmp_path: Path) -> None:
    folder = tmp_path / "real_dialogues"
    folder.mkdir()
    (folder / "a.json").write_text(json.dumps([chat("Who pays for it?", " ", "Thanks, bye")]))
    (folder / "b.json").write_text(json.dumps([chat("Who pays for it?", "Thanks, bye"), chat("Hello there")]))
    first, second = map(json.loads, gzip.decompress(pack_counts(tmp_path)).splitlines())
    assert first == {
        "turns": [2],
        "first_words": [4],
        "follow_up_words": [2],
        "questions": [1, 0],
        "facts_given": [],
        "pronoun_only": [0],
        "thanks": [0, 1],
        "endings": [0, 1],
        "assistants_part": [0, 0],
    }
    assert (second["turns"], second["first_words"]) == ([1], [2])
