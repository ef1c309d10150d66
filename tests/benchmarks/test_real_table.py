"""The table in the docs is what the command prints, from the data and recordings of this repository."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

import benchmarks
from benchmarks import keep_samples
from benchmarks.detectors_table.samples import SOURCES, sample
from tests.benchmarks.labelled_folder import write_data

REPOSITORY = Path(benchmarks.__file__).parent.parent


COMMAND = """
import runpy
from unittest.mock import patch

learns = RuntimeError("a detector learns again; `--record --detectors combined` keeps what it learnt")
with patch("benchmarks.detectors_table.remembering.Remembering._learn", side_effect=learns):
    runpy.run_module("benchmarks.detectors_table", run_name="__main__", alter_sys=True)
"""
"""`python -m benchmarks.detectors_table`, which takes a minute of two cores, and many if it has to learn."""


def test_the_docs_have_the_table_of_the_command_which_learns_nothing_again() -> None:
    done = subprocess.run(
        (sys.executable, "-c", COMMAND), capture_output=True, text=True, check=False, cwd=REPOSITORY
    )
    assert done.returncode == 0, done.stderr[-500:]
    _, _, table = (REPOSITORY / "docs" / "detectors.md").read_text().split("\n\n", 2)
    assert table == done.stdout


def test_kept_samples_are_the_samples(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    data, kept = write_data(tmp_path / "data"), tmp_path / "kept"
    monkeypatch.setattr("sys.argv", ["keep_samples", str(data), "--to", str(kept)])
    keep_samples.main()
    for dataset in SOURCES:
        assert sample(dataset, kept, 200) == sample(dataset, data, 200)
