"""Intervals and tests are right as often as they say, in a short form of `python -m benchmarks.coverage`."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from benchmarks.coverage import (
    PAIRINGS,
    compare_runs,
    count_hits,
    main,
    make_evenly,
    make_gamma,
    make_lengths,
    make_tokens,
    measure_intervals,
    tabulate_plans,
)


def test_hits_by_hand() -> None:
    hits = count_hits([(0.0, 1.0), None, (0.5, 2.0), (2.0, 2.5)], 1.0)
    assert (hits.covered, hits.width, hits.without) == (2 / 3, 1.0, 0.25)
    assert str(hits) == "66.7%; 1.00; 25.0% none"


def test_made_up_numbers_have_their_truth() -> None:
    random = np.random.default_rng(1)
    assert make_gamma(random, (100_000,), 0.3).var() == pytest.approx(0.3, abs=0.01)
    for counts in (make_lengths(1, 100_000, 0.4), make_evenly(1, 100_000, 0.4)):
        assert counts[0].sum() / counts[1].sum() == pytest.approx(0.4, rel=0.02)
    over, under = make_evenly(1, 100_000, 0.4, uneven=True)
    assert over.sum() / under.sum() == pytest.approx(0.4, rel=0.05)
    assert (over > 0).mean() < 0.2
    over, under = make_tokens(random, 1, 10_000, 0.8)
    assert over.sum() / under.sum() == pytest.approx(0.8, rel=0.02)


@pytest.mark.parametrize("personas", [6, 13, 36])
@pytest.mark.parametrize(("hpt", "least"), [(0.1, 0.88), (1.2, 0.9)])
def test_intervals_have_the_truth(personas: int, hpt: float, least: float) -> None:
    """Three standard errors of 250 runs, 4 points, below what 2,000 runs have at least."""
    hits = measure_intervals(make_lengths(250, personas, hpt), "rate", hpt)
    assert hits.covered > least
    assert hits.without < 0.01


def test_intervals_of_shares_have_the_truth() -> None:
    counts = make_tokens(np.random.default_rng(2), 250, 13, 0.95)
    assert measure_intervals(counts, "share", 0.95).covered > 0.89


def test_differences_of_equal_chatbots() -> None:
    for name, most in (("equal, two turns", 0.09), ("equal, two turns against five", 0.11)):
        found = compare_runs(PAIRINGS[name], 250, 13, 0.4)
        assert count_hits([one.ci95 for one in found], 0.0).covered > 0.9
        assert sum((one.p_value or 0) < 0.05 for one in found) / 250 < most


def test_plans_seldom_say_far_too_few() -> None:
    row = next(line for line in tabulate_plans(150, (13,)) if line[0] == "1.2")
    needed, (median, fewer, *_) = int(row[1].replace(",", "")), row[2].split("; ")
    assert int(median) > needed
    assert float(fewer.rstrip("%")) < 50


def test_the_page_gets_the_tables_between_its_marks(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text("# Page\n<!-- coverage begins -->\nold\n<!-- coverage ends -->\nend\n", encoding="utf-8")
    assert main(["--runs", "4", "--pairs-of-runs", "4", "--docs", str(page)]) == 0
    text = page.read_text(encoding="utf-8")
    assert text.startswith("# Page\n<!-- coverage begins -->\n95% intervals of HPT-1")
    assert text.endswith("|\n<!-- coverage ends -->\nend\n")
    assert "old" not in text
