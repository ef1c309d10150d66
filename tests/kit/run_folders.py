"""Run folders written by hand."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from hallulab.scenarios.transcript import Conversation, Verdict
from hallulab.simulator.records.folder import RunFolder


def write_run(
    path: Path, conversations: Sequence[Conversation], verdicts: Sequence[Verdict] = ()
) -> RunFolder:
    """Write the journals of a run folder that has no experiment.json; without verdicts, only the one."""
    run = RunFolder(path)
    run.path.mkdir(parents=True, exist_ok=True)
    for file, lines in ((run.conversations, conversations), (run.verdicts, verdicts)):
        if lines or file == run.conversations:
            file.write_text("".join(f"{line.model_dump_json()}\n" for line in lines), encoding="utf-8")
    return run
