"""Messages of people, to hold simulated users' against: a file of them, or those in the package."""

from __future__ import annotations

import gzip
from collections.abc import Iterable, Iterator
from importlib.resources import files
from pathlib import Path
from typing import Any

from pydantic import ConfigDict

from hallulab.scenarios.chats.formats import format_of, read_chats
from hallulab.scenarios.chats.values import read_json_values
from hallulab.scenarios.errors import UsageError
from hallulab.scenarios.files.data_files import check_record
from hallulab.scenarios.files.jsonl import parse_lines
from hallulab.scenarios.transcript import Frozen
from hallulab.simulator.measure.messages import Messages

HUMAN_TURNS = "human_turns.jsonl.gz"
"""Name of our file, beside this module; `human_turns-license.txt` says where it is from."""
OURS = "MTRAG-UN (people who wrote to RAG assistants)"
_DOCS = "docs/realism.md"


class HumanTurns(Frozen):
    """A conversation of a person: a line of our own format. Other keys are ignored."""

    model_config = ConfigDict(extra="ignore")

    user_turns: tuple[str, ...]
    """The person's messages in order."""


def read_reference(path: Path | None) -> list[Messages]:
    """Return the messages of each conversation of a file; None: of our own.

    A file has lines with `user_turns`, or is in a format that `hallulab import` reads.

    Raises:
        UsageError: the file cannot be read, or a line is wrong; names file, line and remedy.
    """
    if path is None:
        packed = (files(__package__) / HUMAN_TURNS).read_bytes()
        lines = parse_lines(gzip.decompress(packed).splitlines(), Path(HUMAN_TURNS))
        return _build_messages((f"{HUMAN_TURNS}, line {number}", value) for number, value in lines)
    try:
        format = format_of(path)
    except UsageError:
        return _build_messages((f"{path}, {place}", value) for place, _, value in read_json_values(path))
    chats = (one for _, one in read_chats(path, format))
    return [
        Messages((one.scenario, str(number), 0), tuple(turn.user for turn in one.turns))
        for number, one in enumerate(chats)
    ]


def _build_messages(values: Iterable[tuple[str, Any]]) -> list[Messages]:
    return [
        Messages(("", str(number), 0), tuple(text for text in one.user_turns if text.strip()))
        for number, one in enumerate(_check_records(values))
    ]


def _check_records(values: Iterable[tuple[str, Any]]) -> Iterator[HumanTurns]:
    for place, value in values:
        yield check_record(value, HumanTurns, place, _DOCS)
