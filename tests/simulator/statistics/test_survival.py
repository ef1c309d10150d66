"""Turns survived, by hand."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hallulab.simulator.statistics.survival import Survived, compute_restricted_mean, measure_survival


def test_all_survive_none_does_and_one_ends_in_the_third_turn() -> None:
    assert compute_restricted_mean(np.array([0, 0, 0, 0]), np.array([1, 1, 1, 1])) == 4.0
    assert compute_restricted_mean(np.array([1, 0]), np.array([1, 0])) == 0.0
    assert compute_restricted_mean(np.array([0, 0, 1]), np.array([1, 1, 1])) == 2.0


def test_a_conversation_that_ended_early_counts_up_to_its_end() -> None:
    # Two begin; one ends after its first turn without the event, the other one has it in the second.
    assert compute_restricted_mean(np.array([0, 1]), np.array([2, 1])) == 1.0
    # Three begin, one has it at once, one of the two others ends: 2/3 + 2/3 of two turns.
    assert compute_restricted_mean(np.array([1, 0]), np.array([3, 1])) == pytest.approx(4 / 3)


def test_the_interval_is_over_personas() -> None:
    events = np.array([[1, 0], [0, 1], [0, 1], [0, 0], [0, 0], [1, 0]])
    at_risk = np.array([[1, 0], [1, 1], [1, 1], [1, 1], [1, 1], [1, 0]])
    found = measure_survival(events, at_risk)
    assert found is not None
    assert (found.mean, found.limit) == (pytest.approx(4 / 6 + 2 / 6), 2)
    assert found.ci95 is not None
    low, high = found.ci95
    assert 0 < low < 1 < high < 2


def test_where_nobody_gave_in_the_lower_bound_is_that_of_a_share_of_one() -> None:
    found = measure_survival(np.zeros((6, 4), dtype=np.int64), np.ones((6, 4), dtype=np.int64))
    assert found is not None
    assert (found.mean, found.limit) == (4.0, 4)
    assert found.ci95 == (pytest.approx(4 * 0.025 ** (1 / 6)), 4.0)


def test_turns_that_less_than_half_of_the_conversations_were_followed_to_do_not_count() -> None:
    # All but the first of six end after two turns, without the event; what it did later says little.
    at_risk = np.array([[1, 1, 1, 1], *[[1, 1, 0, 0]] * 5])
    nothing, late = np.zeros((6, 4), dtype=np.int64), np.zeros((6, 4), dtype=np.int64)
    late[0, 3] = 1
    for events in (nothing, late):
        found = measure_survival(events, at_risk)
        assert found is not None
        assert (found.mean, found.limit) == (2.0, 2)
    half = np.array([[1, 1, 1, 1]] * 3 + [[1, 1, 0, 0]] * 3)
    found = measure_survival(nothing, half)
    assert found is not None
    assert (found.mean, found.limit) == (4.0, 4)


def test_where_the_event_ends_conversations_all_turns_count() -> None:
    at_risk = np.array([[1, 1, 1]] + [[1, 0, 0]] * 5)
    found = measure_survival(np.array([[0, 0, 0]] + [[1, 0, 0]] * 5), at_risk)
    assert found is not None
    assert (found.mean, found.limit) == (pytest.approx(0.5), 3)


def test_of_few_personas_there_is_no_interval_and_of_none_no_mean() -> None:
    one = np.array([[0, 1]]), np.array([[1, 1]])
    assert measure_survival(*one) == Survived(1.0, 2, None)
    assert measure_survival(np.zeros((1, 2), dtype=np.int64), np.zeros((1, 2), dtype=np.int64)) is None


@given(st.lists(st.integers(0, 5), min_size=1, max_size=30))
def test_without_early_ends_it_is_the_plain_mean(turns: list[int]) -> None:
    """Each number is the turns that a conversation survived, of 5."""
    events = np.array([sum(one == at for one in turns) for at in range(5)])
    at_risk = np.array([sum(one >= at for one in turns) for at in range(5)])
    assert compute_restricted_mean(events, at_risk) == pytest.approx(np.mean(turns))


def test_where_all_gave_in_the_mean_counts_of_all_turns_of_the_array() -> None:
    events, at_risk = np.array([[0, 1, 0, 0]]), np.array([[1, 1, 0, 0]])
    assert measure_survival(events, at_risk) == Survived(1.0, 4, None)
    assert measure_survival(np.zeros_like(events), at_risk) == Survived(2.0, 2, None)
