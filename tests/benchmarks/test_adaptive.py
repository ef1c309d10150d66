from __future__ import annotations

import asyncio

from benchmarks.adaptive import Busy, compare


def test_auto_beats_a_small_number_and_loses_nothing() -> None:
    found = asyncio.run(compare(Busy("small", 0.05, 64, 0), 60, (4, 64)))
    assert found["best_number"] == 64
    assert found["auto_lost"] == 0
    assert found["fixed_over_auto"] > 1
