"""A confidence sequence is what its laws say."""

from __future__ import annotations

import math
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hallulab.simulator.decide.sequence import (
    CEILING,
    MEANS,
    STAKES,
    MeanSequence,
    compute_bar,
    compute_capital,
    compute_growth,
)

DIFFERENCES = st.lists(st.sampled_from([i / 12 for i in range(-36, 37)]), max_size=40)


def follow(differences: list[float], level: float = 0.05) -> list[tuple[float, float]]:
    sequence = MeanSequence(level)
    found = [(sequence.low, sequence.high)]
    for difference in differences:
        sequence.add(difference)
        found.append((sequence.low, sequence.high))
    return found


def test_it_begins_with_the_bounds() -> None:
    assert follow([]) == [(-CEILING, CEILING)]


def test_intervals_of_a_constant() -> None:
    assert follow([0.5] * 100)[10::30] == [(-0.75, 1.39), (0.13, 0.77), (0.28, 0.66), (0.34, 0.61)]


@pytest.mark.parametrize(("difference", "persons"), [(1.0, 16), (0.5, 29), (0.3, 47)])
def test_a_constant_difference_takes_so_many_persons(difference: float, persons: int) -> None:
    assert [low >= 0 for low, _ in follow([difference] * persons)[-2:]] == [False, True]


def test_no_difference_at_all_takes_65_persons_to_be_below_the_margin() -> None:
    assert [high <= 0.2 for _, high in follow([0.0] * 65)[-2:]] == [False, True]


@given(DIFFERENCES)
@settings(max_examples=30, deadline=None)
def test_each_interval_is_inside_those_before_it(differences: list[float]) -> None:
    found = follow(differences)

    assert all(before[0] <= after[0] and after[1] <= before[1] for before, after in pairwise(found))


@given(DIFFERENCES)
@settings(max_examples=30, deadline=None)
def test_exchanging_both_chatbots_mirrors_it(differences: list[float]) -> None:
    mirrored = [(-high, -low) for low, high in follow([-one for one in differences])]

    assert mirrored == follow(differences)


@given(DIFFERENCES, st.sampled_from([0.01, 0.02, 0.05, 0.2]))
@settings(max_examples=30, deadline=None)
def test_a_smaller_level_makes_it_no_narrower(differences: list[float], level: float) -> None:
    narrow, wide = follow(differences, 0.2)[-1], follow(differences, level)[-1]

    assert wide[0] <= narrow[0]
    assert narrow[1] <= wide[1]


@given(st.floats(-1, 1), st.floats(0.01, 0.9))
def test_no_stake_gains_by_a_fair_difference(mean: float, size: float) -> None:
    """Two equally likely differences about the mean leave the capital as it was, on average."""
    gains = np.exp(compute_growth(np.array([mean - size, mean + size]), np.array(mean)))

    assert gains.mean(axis=0) == pytest.approx(np.ones(len(STAKES)))


def test_capital_is_the_mean_over_stakes() -> None:
    assert compute_capital(np.log([[1.0, 3.0]])).tolist() == pytest.approx([math.log(2)])


def test_a_mean_is_excluded_by_forty_times_the_capital() -> None:
    assert compute_bar(0.05) == pytest.approx(math.log(40))


def test_means_are_symmetric_and_have_zero_and_the_margin() -> None:
    assert (-MEANS[::-1]).tolist() == MEANS.tolist()
    assert {0.0, 0.2, -0.2} <= set(MEANS.tolist())


@pytest.mark.parametrize("difference", [3.01, -3.01, float("nan")])
def test_a_difference_is_within_the_bounds(difference: float) -> None:
    with pytest.raises(ValueError, match="is outside of ±3"):
        MeanSequence(0.05).add(difference)
