"""The script that measures the viewer on a big run, on a small one."""

from __future__ import annotations

from pathlib import Path

import pytest

from benchmarks.viewer_scale import make_both, make_table, measure


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    return make_both(1_200, tmp_path_factory.mktemp("runs"))


@pytest.mark.slow
@pytest.mark.parametrize("name", ["one file", "shards"])
def test_a_run_is_opened_in_every_way_that_is_measured(
    name: str, runs: dict[str, Path], tmp_path: Path
) -> None:
    shards = [*runs[name].glob("conversations-*.jsonl")]
    assert len(shards) == (16 if name == "shards" else 0)
    found = measure(runs[name], tmp_path / "cache")
    assert len(list((tmp_path / "cache" / "viewer").glob("*.sqlite"))) == 1
    assert found.built > found.run_meanwhile > 0
    assert 0 < found.chat <= found.slowest_chat
    assert 20 < found.memory < 400
    assert [line[1].split()[-1] for line in found.lines()] == ["s", *["ms"] * 9, "MB"]
    assert make_table({"a": found, "b": found}).splitlines()[0] == "| what | a | b |"
