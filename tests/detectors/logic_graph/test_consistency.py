"""Entailments of many groups into one number."""

from __future__ import annotations

import math
from typing import Any

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


@pytest.mark.parametrize(
    ("relevances", "options", "shares"),
    [
        ([3.0, 1.0], {}, {0: 0.75, 1: 0.25}),
        ([2.0, -2.0], {}, {0: 1.0, 1: 0.0}),
        ([0.0, -2.0], {"top": 1}, {0: 0.5, 1: 0.5}),
        ([1.0, 3.0, 2.0], {"top": 2}, {1: 0.6, 2: 0.4}),
        ([0.5, 0.5 + 0.1 * math.log(3.0), 0.4], {"top": 2, "temperature": 0.1}, {0: 0.25, 1: 0.75}),
        ([-0.2, -0.2], {"temperature": 0.1}, {0: 0.5, 1: 0.5}),
        ([900.0, -900.0], {"temperature": 0.1}, {0: 1.0, 1: 0.0}),
    ],
    ids=["relevance", "below zero", "none above zero", "top", "temperature", "equal", "far apart"],
)
def test_groups_count_by_relevance(
    relevances: list[float], options: dict[str, Any], shares: dict[int, float]
) -> None:
    assert compute_shares(relevances, **options) == pytest.approx(shares)


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
