"""What `python -m benchmarks.decide_methods` compares, in its short form."""

from __future__ import annotations

import numpy as np
import pytest

from benchmarks.decide import SETTINGS, Setting
from benchmarks.decide_methods import LEAST, METHODS, exclude_by_grid, exclude_ordinarily, measure
from hallulab.simulator.statistics.sequence import MeanSequence
from tests.places import ROOT

DOCS = ROOT / "docs" / "decide.md"


def test_all_methods_decide_between_rates_far_apart_and_none_is_wrong() -> None:
    name, *cells = measure(Setting("far", (0.1, 1.6)), 20, 120)

    assert name == "far"
    assert len(cells) == len(METHODS)
    assert [cell.split(" ")[1] for cell in cells] == ["(0.0)"] * len(METHODS)
    assert all(LEAST <= int(cell.split(" ")[0]) < 60 for cell in cells)


def test_an_ordinary_interval_that_is_looked_at_often_is_often_wrong() -> None:
    cells = dict(zip(METHODS, measure(Setting("equal", (0.6, 0.6)), 100, 200)[1:], strict=True))
    wrong = {name: float(cell.split("(")[1].rstrip(")")) for name, cell in cells.items()}

    assert wrong["ordinary interval"] > 20
    assert wrong["hedged, grid"] <= 5


def test_the_grid_is_the_sequence_that_runs_decide_by() -> None:
    differences = np.array([[0.5, 1.0, 0.0, 0.25, 0.75] * 12])
    sequence = MeanSequence(0.05)
    lows = []
    for difference in differences[0].tolist():
        sequence.add(difference)
        lows.append(sequence.low)

    excluded = exclude_by_grid(differences, differences, 0.1)[0]
    assert excluded.any()
    assert np.maximum.accumulate(excluded).tolist() == [low >= 0.1 for low in lows]


def test_the_ordinary_interval_is_students() -> None:
    """Of 0, 1 and 2: mean 1, standard error 0.577, quantile 4.303; so it begins at -1.484."""
    differences = np.array([[0.0, 1.0, 2.0]])

    lows = [exclude_ordinarily(differences, differences, mean)[0, 2] for mean in (-1.49, -1.48)]

    assert lows == [True, False]


@pytest.mark.slow
@pytest.mark.parametrize("setting", SETTINGS[:12:4], ids=lambda setting: setting.name)
def test_the_page_has_what_is_measured(setting: Setting) -> None:
    assert f"| {' | '.join(measure(setting))} |" in DOCS.read_text(encoding="utf-8")
