"""Chats that a Python program holds, as a file that an import reads."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from hallulab.scenarios.errors import UsageError
from hallulab.simulator.options.groups import StrPath

ROWS = "rows"
"""Name of rows that were given in Python, in errors and in the run folder."""


@contextmanager
def open_chats(chats: StrPath | Iterable[Mapping[str, Any]]) -> Iterator[tuple[Path, str | None]]:
    """Yield the file of chats and its name, which is `rows` for rows: they are written for that time.

    Errors of the block call such a file by that name, too, and its lines are the rows.

    Raises:
        UsageError: there is no row, one is no mapping, or a value of it cannot be written.
    """
    if isinstance(chats, str | Path):
        yield Path(chats), None
        return
    with TemporaryDirectory(prefix="hallulab-") as folder:
        file = Path(folder) / f"{ROWS}.jsonl"
        lines = [f"{line}\n" for line in write_rows(chats)]
        if not lines:
            raise UsageError(f"{ROWS}: there is none. Give at least one reply.")
        file.write_text("".join(lines), encoding="utf-8")
        try:
            yield file, ROWS
        except UsageError as error:
            raise UsageError(str(error).replace(str(file), ROWS)) from error


def write_rows(rows: Iterable[Mapping[str, Any]]) -> Iterator[str]:
    """Yield each row of a list or a pandas frame as a line of JSON, without what a table calls missing.

    >>> list(write_rows([{"question": "The fee?", "score": float("nan"), "contexts": ("200.",)}]))
    ['{"question": "The fee?", "contexts": ["200."]}']

    Raises:
        UsageError: they are no list, two columns have one name, a row is no mapping, or a value of it cannot
            be written.
    """
    frame: Any = rows  # it would yield its columns
    if isinstance(rows, Mapping):
        raise UsageError(
            f"{ROWS}: a {type(rows).__name__} is no list of rows. Give a list of mappings, one a reply, or "
            "make a frame of columns: pandas.DataFrame(columns)."
        )
    if hasattr(frame, "columns") and not frame.columns.is_unique:
        twice = next(name for name, again in zip(frame, frame.columns.duplicated(), strict=True) if again)
        raise UsageError(f"{ROWS}: two columns are called {twice!r}. Drop or rename one.")
    for number, row in enumerate(frame.to_dict("records") if hasattr(frame, "columns") else rows, start=1):
        if not hasattr(row, "keys"):
            raise UsageError(
                f"{ROWS}, line {number}: is a {type(row).__name__}. Give a file, a frame or mappings such as "
                "{'question': …, 'contexts': […], 'answer': …}."
            )
        held = {str(key): value for key, value in dict(row).items() if not _is_missing(value)}
        try:
            yield json.dumps(held, default=_simplify, ensure_ascii=False)
        except (TypeError, ValueError, RecursionError) as error:
            raise UsageError(f"{ROWS}, line {number}: {error}. Give texts, numbers and lists.") from error


def _is_missing(value: Any) -> bool:
    """Return whether a cell is empty: None, NaN, and pandas' NA and NaT."""
    not_a_number = isinstance(value, float) and math.isnan(value)
    return value is None or not_a_number or type(value).__name__ in ("NAType", "NaTType")


def _simplify(value: Any) -> Any:
    """Return numbers and arrays of NumPy, times and models as JSON has them."""
    for method in ("tolist", "isoformat", "model_dump"):
        if hasattr(value, method):
            return getattr(value, method)()
    raise TypeError(f"a {type(value).__name__} is no value of JSON")
