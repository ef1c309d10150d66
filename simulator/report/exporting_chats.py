"""Export a run's conversations in the formats of other tools (docs/own-chats.md)."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any, Literal, get_args

from hallulab.scenarios.chats.csv_file import HEADER, build_csv_rows, format_csv_line
from hallulab.scenarios.chats.messages import build_openai_line, build_own_line, build_sharegpt_line
from hallulab.scenarios.chats.ragtruth import build_ragtruth_lines
from hallulab.scenarios.chats.record import Marked
from hallulab.scenarios.chats.tables import FILE, write_table
from hallulab.scenarios.datasets.ragtruth import RESPONSES, SOURCES
from hallulab.scenarios.errors import UsageError
from hallulab.simulator.report.chosen_chats import (
    ExportSelection,
    SelectionCounts,
    require_wanted,
    select_conversations,
)
from hallulab.simulator.report.data_card import render_card
from hallulab.simulator.runs.folder import RunFolder, refuse_overwriting
from hallulab.simulator.runs.whole import write_whole_file, write_whole_folder

Format = Literal["openai", "sharegpt", "hf", "parquet", "csv", "ragtruth", "jsonl"]
FORMATS: tuple[Format, ...] = get_args(Format)
"""Names of the formats that are written."""

_Line = Callable[[Marked, frozenset[str]], dict[str, Any]]
_LINES: dict[Format, _Line] = {
    "openai": build_openai_line,
    "sharegpt": build_sharegpt_line,
    "jsonl": build_own_line,
}


def export_chats(folder: RunFolder, format: Format, wanted: ExportSelection, out: Path) -> SelectionCounts:
    """Write the wanted conversations of a run, one after the other, whole or not at all.

    Raises:
        UsageError: the run lacks what is wanted, nothing is left of it, or `out` is one of its files.
        OperationalError: it cannot be written.
    """
    refuse_overwriting(out, (*folder.files, folder.annotations, folder.path))
    saved = folder.read_experiment()
    journals = folder.read_journals().current(saved)
    require_wanted(wanted, saved, journals, folder)
    counts = SelectionCounts()
    found = select_conversations(journals, saved, wanted, counts)
    if format in ("hf", "ragtruth"):
        with write_whole_folder(out) as beside:
            if format == "hf":
                write_table(beside / FILE, found, wanted.without)
                text = render_card(folder.path.name, saved, journals.conversations, wanted, counts)
                (beside / "README.md").write_text(text, encoding="utf-8")
            else:
                _write_replies(beside, found, wanted.without)
            _require_some(counts, folder)
    else:
        with write_whole_file(out) as beside:
            if format == "parquet":
                write_table(beside, found, wanted.without)
            else:
                _write_lines(beside, _format_lines(format, found, wanted.without))
            _require_some(counts, folder)
    return counts


def _require_some(counts: SelectionCounts, folder: RunFolder) -> None:
    if counts.written:
        return
    why = ", ".join(f"{count} {name.replace('_', ' ')}" for name, count in vars(counts).items() if count)
    raise UsageError(f"{folder.path} has no such conversation ({why or 'it has none yet'}). Ask for less.")


def _format_lines(format: Format, found: Iterable[Marked], without: frozenset[str]) -> Iterator[str]:
    if format == "csv":
        yield format_csv_line(HEADER)
        for marked in found:
            yield from map(format_csv_line, build_csv_rows(marked, without))
    else:
        for marked in found:
            yield _encode_json(_LINES[format](marked, without))


def _write_lines(path: Path, lines: Iterable[str]) -> None:
    with path.open("w", encoding="utf-8", newline="") as file:
        file.writelines(f"{line}\n" for line in lines)


def _write_replies(folder: Path, found: Iterable[Marked], without: frozenset[str]) -> None:
    """Write the two files of RAGTruth."""
    with (
        (folder / RESPONSES).open("w", encoding="utf-8", newline="") as responses,
        (folder / SOURCES).open("w", encoding="utf-8", newline="") as sources,
    ):
        for marked in found:
            for response, source in build_ragtruth_lines(marked, without):
                responses.write(f"{_encode_json(response)}\n")
                sources.write(f"{_encode_json(source)}\n")


def _encode_json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False)
