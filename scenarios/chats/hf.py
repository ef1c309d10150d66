"""A data set folder of the Hugging Face hub: `data/*.parquet`, and a card by which `datasets` finds them."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from hallulab.scenarios.chats import parquet
from hallulab.scenarios.chats.chat_format import ChatFormat, FileStart
from hallulab.scenarios.chats.record import Marked


def recognize(start: FileStart) -> bool:
    """Return whether it is a folder; that of RAGTruth is told before."""
    return start.path.is_dir()


def write(path: Path, chats: Iterable[Marked], without: frozenset[str]) -> None:
    """Write the table of a data set folder, without the card."""
    (path / parquet.DATA).mkdir()
    parquet.write(path / parquet.FILE, chats, without)


INFO = ChatFormat(
    name="hf",
    about="a data set folder of the Hugging Face hub",
    endings=(),
    read=parquet.read,
    recognize=recognize,
    write=write,
    for_training=True,
    rank=11,
    has_card=True,
)
