"""Entailments of many groups into one number."""

from __future__ import annotations

import math

import pytest

from hallulab.detectors.logic_graph.relations import compute_shares, compute_support

TABLE_8 = (
    [
        0.0084774,
        0.0117619,
        0.0536240,
        0.0551189,
        0.0785078,
        0.0673167,
        0.3645375,
        0.0041742,
        0.0077493,
        0.0125964,
    ],
    [7.5, 3.125, 2.9375, 3.8125, 0.375, 7.1875, 8.6875, 2.4375, 7.4375, 2.8125],
)
TABLE_9 = (
    [0.0093054, 0.0117619, 0.0536240, 0.0551189, 0.0673167, 0.8418207, 0.0041742, 0.0077493],
    [6.625, 3.125, 2.9375, 3.8125, 7.1875, 8.6875, 2.4375, 7.4375],
)


def test_groups_count_by_relevance() -> None:
    assert compute_shares([3.0, 1.0]) == {0: 0.75, 1: 0.25}


def test_without_a_relevance_above_zero_all_groups_count_the_same() -> None:
    assert compute_shares([0.0, -2.0], top=1) == {0: 0.5, 1: 0.5}


def test_a_relevance_below_zero_is_none() -> None:
    assert compute_shares([2.0, -2.0]) == {0: 1.0, 1: 0.0}


def test_only_the_most_relevant_groups_count() -> None:
    assert compute_shares([1.0, 3.0, 2.0], top=2) == {1: 0.6, 2: 0.4}


def test_a_temperature_sets_relevances_apart_that_lie_close_together() -> None:
    first, second = compute_shares([0.5, 0.5 + 0.1 * math.log(3.0), 0.4], top=2, temperature=0.1).values()
    assert (first, second) == pytest.approx((0.25, 0.75))


def test_by_temperature_a_relevance_may_be_below_zero() -> None:
    assert compute_shares([-0.2, -0.2], temperature=0.1) == {0: 0.5, 1: 0.5}


def test_by_a_low_temperature_the_most_relevant_group_counts_alone() -> None:
    assert compute_shares([900.0, -900.0], temperature=0.1) == {0: 1.0, 1: 0.0}


def test_the_support_is_the_weighted_sum_of_what_counts() -> None:
    assert compute_support({0: 0.1, 1: 0.9, 2: 0.5}, {1: 0.6, 2: 0.4}) == pytest.approx(0.74)


def test_rounding_does_not_lead_above_one() -> None:
    assert compute_support(dict.fromkeys(range(3), 1.0), compute_shares([0.1, 0.7, 0.1])) == 1.0


@pytest.mark.parametrize(("table", "top", "printed"), [(TABLE_8, 5, 0.115), (TABLE_9, 2, 0.457)])
def test_the_worked_example_is_the_equation_over_the_most_relevant_groups(
    table: tuple[list[float], list[float]], top: int, printed: float
) -> None:
    entailments = dict(enumerate(table[0]))
    assert round(compute_support(entailments, compute_shares(table[1], top)), 3) == printed
    assert abs(compute_support(entailments, compute_shares(table[1])) - printed) > 0.02
