"""People's messages that a run's are compared with: files of texts, and the references of the package."""

from __future__ import annotations

import gzip
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from importlib.resources import files
from itertools import count
from pathlib import Path
from typing import Any

from pydantic import ConfigDict

from hallulab.scenarios.chats.formats import format_of, read_chats, without_mapping
from hallulab.scenarios.chats.json_rows import NAME as ROWS
from hallulab.scenarios.chats.values import read_json_values
from hallulab.scenarios.errors import UsageError
from hallulab.scenarios.files.data_files import check_record
from hallulab.scenarios.files.json_text import parse_lines
from hallulab.scenarios.text.wording import render_one_line
from hallulab.scenarios.transcript import Frozen
from hallulab.simulator.metrics.messages import CountedMessages, Messages

HUMAN_TURNS = "human_turns.jsonl.gz"
"""MTRAG-UN's messages, beside this module; `human_turns-license.txt` says where they are from."""
HUMAN_COUNTS = "human_counts.jsonl.gz"
"""Counts of realsim's messages, beside this module; `human_counts-license.txt` says where they are from."""
_DOCS = "docs/realism.md"
_LONGEST_NAME = 11
"""Characters of a reference's name, so that two references fit into a terminal's 100 columns."""


class HumanTurns(Frozen):
    """A conversation of a person: a line of our own format. Other keys are ignored."""

    model_config = ConfigDict(extra="ignore")

    user_turns: tuple[str, ...]
    """The person's messages in order."""


@dataclass(frozen=True)
class People:
    """The messages of a reference."""

    name: str
    """Short name, unique among the references of a comparison."""
    source: str
    """Where the messages are from."""
    conversations: Sequence[Messages | CountedMessages]


def read_people(paths: Sequence[Path]) -> list[People]:
    """Return the messages of each file; without files, those of the package: MTRAG-UN and realsim.

    Raises:
        UsageError: a file cannot be read, or a line is wrong; names file, line and remedy.
    """
    found: list[People] = []
    for path in paths:
        stem = render_one_line(path.stem)
        name = stem = stem if len(stem) <= _LONGEST_NAME else f"{stem[: _LONGEST_NAME - 1]}…"
        taken = {one.name for one in found}
        numbers = count(len(found) + 1)
        while name in taken:
            name = f"{stem[: _LONGEST_NAME - 2]} {next(numbers)}"
        found.append(People(name, str(path), read_reference(path)))
    return found or [
        People("MTRAG-UN", "MTRAG-UN (people who wrote to RAG assistants)", read_human_turns()),
        People("realsim", "realsim (people who wrote to general assistants)", read_human_counts()),
    ]


def read_human_turns() -> list[Messages]:
    """Return the messages of each conversation of MTRAG-UN."""
    return _build_messages((f"{HUMAN_TURNS}, line {number}", value) for number, value in _unpack(HUMAN_TURNS))


def read_human_counts() -> list[CountedMessages]:
    """Return the counts of each conversation of realsim."""
    return [
        CountedMessages(("", str(number), 0), {field: tuple(counts) for field, counts in value.items()})
        for number, value in _unpack(HUMAN_COUNTS)
    ]


def _unpack(name: str) -> Iterable[tuple[int, Any]]:
    """Return number and value of the lines of a file of the package."""
    packed = (files(__package__) / name).read_bytes()
    return parse_lines(gzip.decompress(packed).splitlines(), Path(name))


def read_reference(path: Path) -> list[Messages]:
    """Return the messages of each conversation of a file.

    It has lines with `user_turns`, or is in a format that `hallulab import` reads.

    Raises:
        UsageError: the file cannot be read, or a line is wrong; names file, line and remedy.
    """
    try:
        format = format_of(path)
    except UsageError:
        format = None
    # Rows may be messages of a person alone.
    first = next(read_json_values(path), None) if format == ROWS else None
    alone = first is not None and isinstance(first.value, Mapping) and "user_turns" in first.value
    if format is None or alone:
        return _build_messages((f"{path}, {place}", value) for place, _, value in read_json_values(path))
    with without_mapping():
        return [
            Messages((one.scenario, str(number), 0), tuple(turn.user for turn in one.turns))
            for number, (_, one) in enumerate(read_chats(path, format))
        ]


def _build_messages(values: Iterable[tuple[str, Any]]) -> list[Messages]:
    found = (check_record(value, HumanTurns, place, _DOCS) for place, value in values)
    return [
        Messages(("", str(number), 0), tuple(text for text in one.user_turns if text.strip()))
        for number, one in enumerate(found)
    ]
