"""The formats of chats: which there are, which one a file is in, and what it holds.

A format is a module of this package with `INFO`, of the format's name, or an entry point.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from functools import cache
from pathlib import Path

from hallulab.scenarios.chats.chat_format import ChatFormat, FileStart, ReadChat
from hallulab.scenarios.chats.reading import Reading, place_in
from hallulab.scenarios.chats.turns import THOUGHTS
from hallulab.scenarios.chats.unknown import describe_unknown, is_chat_of_people
from hallulab.scenarios.chats.values import FormatError, open_chats, read_json_values
from hallulab.scenarios.components import find_info, import_constants, list_component_names
from hallulab.scenarios.errors import UsageError

GROUP = "hallulab.chat_formats"
"""Group of the entry points; each gives a `ChatFormat`."""

_DOCS = "docs/own-chats.md"
_START = 65_536
_MOST_WRONG = 100
"""Values at the beginning of a file that may be wrong where its format is found out."""


@cache
def _import_own() -> Mapping[str, ChatFormat]:
    """Return our formats, those with the lowest rank first."""
    found: Mapping[str, ChatFormat] = import_constants(__package__, "INFO")
    return dict(sorted(found.items(), key=lambda item: item[1].rank))


def list_formats() -> list[str]:
    """Return the names of the formats that are read, ours first."""
    return list_component_names(_import_own(), GROUP)


def list_written_formats() -> list[str]:
    """Return the names of the formats that are written, ours first; of other people's, all."""
    return [name for name in list_formats() if name not in _import_own() or _import_own()[name].write]


def find_format(name: str) -> ChatFormat:
    """Return a format.

    Raises:
        UsageError: there is none of that name, or its distribution cannot be used.
    """
    return find_info("format", name, _import_own(), GROUP, ChatFormat)


def read_chats(path: Path, format: str, reading: Reading | None = None) -> Iterator[ReadChat]:
    """Yield the conversations of a file, in the order of the file; those without a reply, too.

    Args:
        path: the file.
        format: its format.
        reading: what the user decided; it notes what was taken for what. None: nothing was decided.

    Raises:
        UsageError: there is no such format, or something in the file is wrong; names file, line and remedy.
    """
    reading = reading or Reading()
    try:
        for one in find_format(format).read(path, reading):
            for turn in one.conversation.turns:
                if any(step.name == THOUGHTS for step in turn.steps):
                    reading.count("Replies from which the thoughts of the model were left out")
            yield one
    except FormatError as error:
        raise UsageError(f"{place_in(path, error.place)}: {error}") from error


@contextmanager
def without_mapping() -> Iterator[None]:
    """Say where names can be mapped, in errors of a command that has no `--map`.

    Raises:
        UsageError: the error.
    """
    try:
        yield
    except UsageError as error:
        if "--map" not in str(error):
            raise
        raise UsageError(
            f"{error} This command has no --map: `hallulab import` has one; give the conversations.jsonl "
            "that it writes."
        ) from error


def format_of(path: Path, reading: Reading | None = None) -> str:
    """Find out the format of a file or folder by its content.

    Args:
        path: the file.
        reading: what the user decided; None: nothing.

    Raises:
        UsageError: it cannot be read, or is in no known format.
    """
    start, line = _read_start(path)
    start = start._replace(mapping=(reading or Reading()).mapping)
    for name in list_formats():
        recognize = find_format(name).recognize
        if recognize is not None and recognize(start):
            return name
    if not path.is_dir() and not start.data.strip():
        raise UsageError(f"{path}, line 1: the file is empty. Give a file of chats.")
    raise UsageError(
        f"{path}, line {line}: in no format that is known by its content: {describe_unknown(start)} "
        f"See {_DOCS}."
    )


def _read_start(path: Path) -> tuple[FileStart, int]:
    """Return the beginning of a file or folder, and the line of its first value."""
    if path.is_dir():
        return FileStart(path, b"", None), 1
    with open_chats(path) as file:
        data = file.read(_START)
    if data.decode("utf-8-sig", "replace").lstrip()[:1] not in ("{", "[") or is_chat_of_people(data):
        return FileStart(path, data, None), 1
    wrong = list[Exception]()

    def keep(error: Exception, place: str) -> None:
        """Keep what is wrong with a value; reading the file says it, or leaves the value out."""
        wrong.append(error)
        if len(wrong) > _MOST_WRONG:
            raise wrong[0]

    first = next(read_json_values(path, keep), None)
    if first is None and wrong:
        raise wrong[0]
    if first is None:
        return FileStart(path, data, None), 1
    value = first.value if isinstance(first.value, Mapping) else None
    return FileStart(path, data, value), first.line
