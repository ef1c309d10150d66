"""A data set of Ragas: `EvaluationDataset.from_jsonl` reads a sample of one turn a line.

`conversation_id`, `turn_index` and `model` stand beside Ragas' own fields, which leave them out.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from hallulab.scenarios.chats import json_rows
from hallulab.scenarios.chats.chat_format import ChatFormat, encode_json, write_lines
from hallulab.scenarios.chats.record import Marked


def write(path: Path, chats: Iterable[Marked], without: frozenset[str]) -> None:
    """Write a line for each reply."""
    write_lines(path, (encode_json(line) for marked in chats for line in build_ragas_lines(marked, without)))


def build_ragas_lines(marked: Marked, without: frozenset[str]) -> Iterator[dict[str, Any]]:
    """Yield a sample for each turn, with the texts of its passages."""
    one = marked.conversation
    for turn in one.turns:
        passages = [] if "passages" in without else [passage.text for passage in turn.passages]
        yield {
            "user_input": turn.user, "response": turn.reply, "retrieved_contexts": passages,
            "conversation_id": one.id, "turn_index": turn.index, "model": one.model,
        }  # fmt: skip


INFO = ChatFormat(
    name="ragas",
    about="a data set of Ragas",
    endings=(".jsonl",),
    read=json_rows.read,
    write=write,
    rank=14,
)
