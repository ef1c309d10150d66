"""The writer of labelled files."""

from __future__ import annotations

from pathlib import Path

from hallulab.scenarios.datasets.rows import load_rows
from hallulab.scenarios.transcript import Passage
from hallulab.simulator.bench.build import write_labelled
from tests.simulator.bench.material import reply


def test_passages_are_read_back_as_they_were_with_their_topics(tmp_path: Path) -> None:
    passages = (
        Passage(id="d#0", document="d", text="Crayons cost Rs 2.", topic="prices"),
        Passage(id="e#1", document="e", text="Chalk came first."),
    )
    written = reply((31, 35), passages=passages)
    write_labelled(tmp_path / "d.jsonl", [written])
    (read,) = load_rows(tmp_path / "d.jsonl")
    assert read.passages == written.passages == passages
