"""Parquet tables of a run hold what its frames hold."""

from __future__ import annotations

from pathlib import Path

import pandas
import pytest

from hallulab.results import Run
from hallulab.scenarios.errors import UsageError
from hallulab.simulator.records.folder import RunFolder
from hallulab.simulator.report.frames import write_tables
from tests.simulator.command_line import CommandLine
from tests.simulator.sharded import make_run

KEY = ["conversation", "turn", "detector"]


@pytest.mark.parametrize("in_shards", [False, True])
def test_tables_hold_what_the_frames_hold(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, in_shards: bool
) -> None:
    monkeypatch.setattr("hallulab.simulator.report.frames._BATCH", 5)
    folder = make_run(tmp_path / "run", 1, in_shards=in_shards)
    assert write_tables(folder) == dict(zip(folder.tables, (36, 72, 24), strict=True))
    run = Run(folder.path)
    for path, frame in zip(folder.tables, (run.turns(), run.verdicts(), run.spans()), strict=True):
        key = [name for name in KEY if name in frame.columns]
        table = pandas.read_parquet(path).astype(frame.dtypes.to_dict())
        for column in ("passages", "documents"):
            if column in table:
                table[column] = table[column].map(list)
        pandas.testing.assert_frame_equal(
            table.sort_values(key, ignore_index=True), frame.sort_values(key, ignore_index=True)
        )


def test_a_run_without_verdicts_has_empty_tables_with_all_columns(folder: RunFolder) -> None:
    folder.conversations.write_text("")
    assert list(write_tables(folder).values()) == [0, 0, 0]
    assert "reply" in pandas.read_parquet(folder.tables[0]).columns


def test_the_command_says_what_it_wrote_and_clearing_removes_it(
    tmp_path: Path, hallulab: CommandLine
) -> None:
    folder = make_run(tmp_path / "run", 1, in_shards=False)
    ended = hallulab("export", folder.path, "--format", "tables")
    lines = zip(folder.tables, ("36 rows", "72 rows", "24 rows"), strict=True)
    assert (ended.code, ended.out) == (0, "".join(f"{path}: {rows}\n" for path, rows in lines))
    folder.clear()
    assert list(folder.path.iterdir()) == []


def test_a_table_that_is_a_link_to_elsewhere_is_refused(tmp_path: Path) -> None:
    folder = make_run(tmp_path / "run", 1, in_shards=False)
    folder.tables[0].symlink_to(tmp_path / "precious")
    with pytest.raises(UsageError):
        write_tables(folder)
    assert not (tmp_path / "precious").exists()
