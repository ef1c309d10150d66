"""Runs for tests of exports."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

from hallulab.scenarios.chats.formats import format_of
from hallulab.scenarios.transcript import Conversation, Passage, Turn
from hallulab.simulator.options.groups import ExportSelection
from hallulab.simulator.records.experiment_json import Imported
from hallulab.simulator.records.folder import RunFolder
from hallulab.simulator.records.importing import import_chats
from hallulab.simulator.report.export import export_chats
from tests.builders import conversation, scored, unscored
from tests.kit.run_folders import write_run

ALL = ExportSelection(keep_duplicates=True)
READ_AS = {"otlp": "otel", "ragas": "json-rows", "deepeval": "json-rows"}
"""Format → the one in which its files are read."""


def again(run: RunFolder, format: str, wanted: ExportSelection = ALL) -> list[Conversation]:
    """The conversations of a run, exported and imported."""
    return list(export_and_import(run, format, wanted).read_conversations())


def export_and_import(run: RunFolder, format: str, wanted: ExportSelection = ALL) -> RunFolder:
    out, back = run.path / f"out.{format}", RunFolder(run.path / f"back-{format}")
    export_chats(run, format, wanted, out)
    found = format_of(out)
    assert found == READ_AS.get(format, format)
    asyncio.run(import_chats(out, back, Imported(file="x", format=found), "imported"))
    return back


FEES = (Passage(id="fees#0", document="fees", text="The fee is 200."),)


def chat(id: str, *replies: str, **fields: Any) -> Conversation:
    made = tuple(
        Turn(index=index, user=f"Question {index}?", reply=reply, passages=FEES)
        for index, reply in enumerate(replies)
    )
    return conversation(id, [], turns=made, **{"model": "m", **fields})


def half_judged(folder: Path) -> RunFolder:
    """A conversation of four replies: clean by both detectors, failed by one, flagged by one, not judged."""
    verdicts = [
        *(scored("a", 0, detector=name) for name in "de"),
        scored("a", 1, detector="d"), unscored("a", 1, detector="e"),
        scored("a", 2, [(0, 2)], detector="d"), unscored("a", 2, "abstained", detector="e"),
    ]  # fmt: skip
    return write_run(folder, [chat("a", "It is 1.", "It is 2.", "It is 3.", "It is 4.")], verdicts)
