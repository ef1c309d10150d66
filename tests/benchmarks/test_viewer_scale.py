"""The script that measures the viewer on a big run, on a small one."""

from __future__ import annotations

from pathlib import Path

import pytest

from benchmarks.scale.made_run import make
from benchmarks.viewer_scale import measure


@pytest.mark.slow
def test_a_run_is_opened_in_every_way_that_is_measured(tmp_path: Path) -> None:
    make(1_200, tmp_path / "run")
    found = measure(tmp_path / "run", tmp_path / "cache")
    assert len(list((tmp_path / "cache" / "viewer").glob("*.sqlite"))) == 1
    assert found.built > found.run_meanwhile > 0
    assert found.run < 1.5
    assert found.chat <= found.slowest_chat < 1
    assert 20 < found.memory < 400
    assert [line[1].split()[-1] for line in found.lines()] == ["s", *["ms"] * 9, "MB"]
