"""Intervals of corrected numbers have the true ones: `python -m benchmarks.corrected_coverage` in short."""

from __future__ import annotations

import numpy as np
import pytest

from benchmarks.corrected_coverage import (
    EQUAL_RATES,
    METHODS,
    SHARES,
    covered,
    false_leads,
    lines,
    made_up,
    share_lines,
    truth,
)


@pytest.mark.parametrize(("method", "runs"), [*zip(METHODS, (150, 150, 50, 150, 50, 50), strict=True)])
def test_intervals_have_the_truth(method: str, runs: int) -> None:
    """95% intervals do in 86% at the least, but for a chance of one in a hundred of 50 runs."""
    random = np.random.default_rng(0)
    detector = (0.6, 0.95)
    numbers = METHODS[method](random, made_up(random, runs, 20, 0.3, detector), detector)
    share, _, without = covered(numbers, truth(0.3, share=method in SHARES))
    assert share is not None
    assert share > 0.86
    assert without < 0.02


def test_the_truth_is_the_mean_of_many_made_up_turns() -> None:
    runs = made_up(np.random.default_rng(0), 1, 200_000, 0.3, (0.6, 0.95))
    there = runs.sentences > 0
    assert runs.wrong.sum() / there.sum() == pytest.approx(truth(0.3, share=False), rel=0.01)
    assert (runs.wrong > 0).sum() / there.sum() == pytest.approx(truth(0.3, share=True), rel=0.01)


def test_of_few_conversations_there_is_no_interval() -> None:
    assert {line[3] for line in lines(2, (5,))} == {"none"}


@pytest.mark.parametrize("rate", EQUAL_RATES)
def test_equal_chatbots_are_seldom_told_apart(rate: float) -> None:
    """At most 6.5% of runs, but for a chance of one in a hundred of 100."""
    assert max(false_leads(100, 10, 2, rate, (0.6, 0.95))) <= 0.13


def test_planted_errors_give_the_share_of_turns_where_errors_are_poisson() -> None:
    row = [*share_lines()][4]
    assert row == ["1.2", "0.6", "0.70; 0.86; 0.70", "0.55; 0.70; 0.60"]
