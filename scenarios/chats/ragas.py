"""A data set of Ragas: `EvaluationDataset.from_jsonl` reads a sample of one turn a line.

`conversation_id`, `turn_index` and `model` stand beside Ragas' own fields, which leave them out.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

from hallulab.scenarios.chats import json_rows
from hallulab.scenarios.chats.chat_format import ChatFormat, encode_json, write_lines
from hallulab.scenarios.chats.record import Marked
from hallulab.scenarios.chats.row_kinds import RAGAS, WRITTEN_BESIDE


def write(path: Path, chats: Iterable[Marked], without: frozenset[str]) -> None:
    """Write a line for each reply."""
    write_lines(path, (encode_json(line) for marked in chats for line in build_ragas_lines(marked, without)))


def build_ragas_lines(
    marked: Marked, without: frozenset[str], names: Sequence[str] = RAGAS
) -> Iterator[dict[str, Any]]:
    """Yield a sample for each turn, with the texts of its passages; `names` are those of its parts."""
    one = marked.conversation
    for turn in one.turns:
        passages = [] if "passages" in without else [passage.text for passage in turn.passages]
        cells = (turn.user, turn.reply, passages, one.id, turn.index, one.model)
        yield dict(zip((*names, *WRITTEN_BESIDE), cells, strict=True))


INFO = ChatFormat(
    name="ragas",
    about="a data set of Ragas",
    endings=(".jsonl",),
    read=json_rows.read,
    write=write,
    rank=14,
)
