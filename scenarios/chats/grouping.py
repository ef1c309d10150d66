"""Put together what belongs together, wherever it stands in a file: on disk, not in memory."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterator
from types import TracebackType
from typing import Any, NamedTuple, Self


class GroupedPart(NamedTuple):
    """A part of a group."""

    line: int
    """The line of the file on which it begins."""
    value: Any
    """Its JSON value."""


class Groups:
    """Groups of JSON values by name, in a database that the system deletes when it is closed."""

    def __init__(self) -> None:
        # An empty name is a temporary file without a name.
        self._database = sqlite3.connect("")
        self._database.execute("CREATE TABLE part (name TEXT, at REAL, line INTEGER, value TEXT)")

    def add(self, name: str, at: float, line: int, value: Any) -> None:
        """Add a value to a group.

        Args:
            name: the group.
            at: its place in the group's order, before that in the file.
            line: the line of the file on which it begins.
            value: a JSON value.
        """
        text = json.dumps(value, ensure_ascii=False)
        self._database.execute("INSERT INTO part VALUES (?, ?, ?, ?)", (name, at, line, text))

    def __iter__(self) -> Iterator[tuple[str, list[GroupedPart]]]:
        """Yield each group, in the order in which they begin in the file, with its parts in order."""
        self._database.execute("CREATE INDEX IF NOT EXISTS by_name ON part (name)")
        names = self._database.execute("SELECT name, MIN(rowid) FROM part GROUP BY name ORDER BY 2")
        for name, _ in names:
            parts = self._database.execute(
                "SELECT line, value FROM part WHERE name = ? ORDER BY at, rowid", (name,)
            )
            yield name, [GroupedPart(line, json.loads(value)) for line, value in parts]

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._database.close()
