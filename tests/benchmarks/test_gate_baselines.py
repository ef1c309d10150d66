"""How often a gate blocks unchanged builds, by baseline."""

from __future__ import annotations

import numpy as np
import pytest

from benchmarks.gate_baselines import blocked, main


def test_lucky_baselines_block_more_builds() -> None:
    one, best = (
        np.mean([blocked(np.random.default_rng(seed), 13, 0.8, 50, tries) for seed in range(15)])
        for tries in (1, 5)
    )
    assert one < 0.06 < best + 0.05


def test_the_command_prints_a_row_for_each_kind_of_baseline(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--baselines", "2", "--builds", "3"]) == 0
    rows = capsys.readouterr().out.splitlines()[2:]
    assert [row.split(" | ")[2] for row in rows] == ["one run", "the best of 5 runs"] * 4
