"""The table in the docs is what the command prints, from the data and recordings of this repository."""

from __future__ import annotations

import resource
import subprocess
import sys
from pathlib import Path

import pytest

import benchmarks
from benchmarks import keep_samples
from benchmarks.detectors_table.samples import SOURCES, sample
from tests.benchmarks.labelled_folder import write_data

REPOSITORY = Path(benchmarks.__file__).parent.parent


def test_the_docs_have_the_table_of_the_command_which_takes_about_a_minute_of_two_cores() -> None:
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    done = subprocess.run(
        (sys.executable, "-m", "benchmarks.detectors_table"),
        capture_output=True,
        text=True,
        check=False,
        cwd=REPOSITORY,
    )
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    assert done.returncode == 0, done.stderr[-500:]
    _, _, table = (REPOSITORY / "docs" / "detectors.md").read_text().split("\n\n", 2)
    assert table == done.stdout
    used = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    # It takes 105 s of one core here, more where other work shares the cores.
    assert used < 150, "does the command learn again? `--record --detectors combined` keeps what it learnt"


def test_kept_samples_are_the_samples(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    data, kept = write_data(tmp_path / "data"), tmp_path / "kept"
    monkeypatch.setattr("sys.argv", ["keep_samples", str(data), "--to", str(kept)])
    keep_samples.main()
    for dataset in SOURCES:
        assert sample(dataset, kept, 200) == sample(dataset, data, 200)
