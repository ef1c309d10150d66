"""Which chunks are read together, and how the entailments of many groups become one number."""

from __future__ import annotations

import math
from typing import Any

import numpy
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hallulab.detectors.logic_graph.relations import (
    compute_distances,
    compute_shares,
    compute_support,
    find_clusters,
    find_related,
)

LINE = numpy.array([[0.0], [1.0], [2.0], [10.0]])
"""Three points in a row and one far away: mean distance 5.33."""


def test_distances_are_euclidean() -> None:
    assert compute_distances(numpy.array([[0.0, 0.0], [3.0, 4.0]])).tolist() == [[0.0, 5.0], [5.0, 0.0]]


def test_related_is_within_alpha_times_the_mean() -> None:
    graph = find_related(compute_distances(LINE), 0.2)
    assert list(graph.nodes) == [0, 1, 2, 3]
    assert list(graph.edges(data="length")) == [(0, 1, 1.0), (1, 2, 1.0)]


def test_a_single_chunk_is_related_to_none() -> None:
    assert find_clusters(numpy.zeros((1, 1)), [7], 1.0, 10) == [[0]]


def test_doubles_are_related_and_put_together_like_others() -> None:
    apart = compute_distances(numpy.array([[0.0], [1.0], [1.0], [2.0], [9.0]]))
    assert find_related(apart, 0.3).edges[1, 2]["length"] == 1e-6
    assert find_clusters(apart, [1, 1, 1, 1, 1], 0.3, 4) == [[0, 1, 2, 3], [4]]


def test_bridges_are_merged_first() -> None:
    # Two pairs, and 2-3 between them: with room for two chunks only the bridge is merged.
    apart = compute_distances(numpy.array([[0.0], [1.0], [2.2], [3.2]]))
    assert find_clusters(apart, [5, 5, 5, 5], 0.7, 10) == [[0], [1, 2], [3]]


def test_of_equal_betweenness_the_shorter_edge_is_merged_first() -> None:
    apart = compute_distances(numpy.array([[0.0], [3.0], [5.0]]))
    assert find_clusters(apart, [1, 1, 1], 5.0, 2) == [[0], [1, 2]]


def test_what_does_not_fit_is_passed_over() -> None:
    apart = compute_distances(LINE)
    assert find_clusters(apart, [4, 9, 4, 1], 9.0, 9) == [[0, 2, 3], [1]]


def test_clusters_and_members_are_in_document_order() -> None:
    apart = compute_distances(numpy.array([[5.0], [0.0], [5.1], [0.1]]))
    assert find_clusters(apart, [1, 1, 1, 1], 0.2, 10) == [[0, 2], [1, 3]]


@given(
    st.lists(st.integers(1, 9), min_size=1, max_size=8),
    st.floats(min_value=0.1, max_value=2.0),
    st.integers(0, 10**6),
)
def test_every_chunk_is_in_one_cluster_and_clusters_keep_the_limit(
    tokens: list[int], alpha: float, seed: int
) -> None:
    apart = compute_distances(numpy.random.default_rng(seed).normal(size=(len(tokens), 3)))
    found = find_clusters(apart, tokens, alpha, 12)
    assert sorted(index for cluster in found for index in cluster) == list(range(len(tokens)))
    assert all(sum(tokens[index] for index in cluster) <= 12 for cluster in found)


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
