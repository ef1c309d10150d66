"""Whether three or more detectors differ at all, and whether two do."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import pytest
import scipy.stats

from hallulab.simulator.bench.levels import Items
from hallulab.simulator.bench.significance import compute_wilcoxon_p, run_friedman_test
from hallulab.simulator.statistics.detection import Sample
from tests.simulator.bench.material import known

GROUPS = [0, 1, 2, 3]


def scored(scores: Sequence[float], groups: Sequence[int] = GROUPS, replies: Sequence[int] = GROUPS) -> Items:
    found, no = np.array(scores), np.zeros(len(scores), dtype=bool)
    owners = np.array(replies)
    return Items(Sample(no, found, no, np.array(groups)), owners, np.arange(len(scores)), no, owners)


def detectors(**scores: Sequence[float]) -> Mapping[str, Items]:
    return {name: scored(given) for name, given in scores.items()}


def test_the_statistic_by_hand() -> None:
    found = known(run_friedman_test(detectors(a=[0.1] * 4, b=[0.2] * 4, c=[0.3, 0.3, 0.3, 0.15])))
    # Rank sums 4, 9, 11 of three detectors in four sources: 12 / (4·3·4) · (16 + 81 + 121) − 3·4·4
    assert found.statistic == 6.5
    assert found.p_value == pytest.approx(np.exp(-6.5 / 2), rel=1e-5)  # chi-squared, two degrees of freedom
    assert found.mean_ranks == {"a": 1.0, "b": 2.25, "c": 2.75}
    assert (found.n, found.groups) == (4, 4)


def test_a_source_counts_once_however_many_replies_it_has() -> None:
    groups, replies = [0, 0, 1, 2, 2], [0, 1, 2, 3, 4]
    measured = {
        "a": scored([0.0, 0.4, 0.1, 0.1, 0.1], groups, replies),
        "b": scored([0.3, 0.3, 0.2, 0.2, 0.2], groups, replies),
        "c": scored([0.3, 0.4, 0.3, 0.3, 0.3], groups, replies),
    }
    found = known(run_friedman_test(measured))
    assert (found.n, found.groups, found.mean_ranks) == (5, 3, {"a": 1.0, "b": 2.0, "c": 3.0})


def test_the_error_of_a_source_is_the_mean_of_its_squared_errors() -> None:
    groups, replies = [0, 0, 1, 2], [0, 1, 2, 3]
    # In the first source a is off by 0 and 0.6: more than b in squares, less in the mean distance.
    measured = {
        "a": scored([0.0, 0.6, 0.4, 0.4], groups, replies),
        "b": scored([0.35] * 4, groups, replies),
        "c": scored([1.0] * 4, groups, replies),
    }
    found = known(run_friedman_test(measured))
    assert found.mean_ranks == {"a": 2.0, "b": 1.0, "c": 3.0}


def test_only_replies_that_all_scored_count() -> None:
    measured = {**detectors(a=[0.1] * 4, b=[0.2] * 4), "c": scored([0.3] * 3, [0, 2, 3], [0, 2, 3])}
    found = known(run_friedman_test(measured))
    assert (found.n, found.groups) == (3, 3)


def test_detectors_that_never_differ_have_no_p_value() -> None:
    found = known(run_friedman_test(detectors(a=[0.1] * 4, b=[0.1] * 4, c=[0.1] * 4)))
    assert (found.statistic, found.p_value, found.mean_ranks["a"]) == (None, None, 2.0)


@pytest.mark.parametrize(
    "measured",
    [
        detectors(a=[0.1] * 4, b=[0.2] * 4),
        detectors(a=[0.1] * 4, b=[0.2] * 4, c=[3.0] * 4),
        {name: scored([0.1] * 2, [0, 1], [0, 1]) for name in "abc"},
        detectors(a=[0.1] * 4, b=[0.2] * 4) | {"c": scored([], [], [])},
    ],
    ids=["two detectors", "no probabilities", "two sources", "nothing scored"],
)
def test_too_few_make_no_test(measured: Mapping[str, Items]) -> None:
    assert run_friedman_test(measured) is None


@pytest.mark.parametrize(
    ("first", "second", "p"),
    [
        # All five differences are positive: 2 of the 2^5 sign patterns are as extreme.
        ([1, 2, 3, 4, 5], [0, 0, 0, 0, 0], 2 / 32),
        # All ranks are equal, so it is the sign test: 2 · (C(13, 0) + … + C(13, 3)) of 2^13 patterns.
        ([1] * 10 + [0] * 3, [0] * 10 + [1] * 3, 756 / 2**13),
        ([1] * 11 + [0] * 3, [0] * 11 + [1] * 3, 940 / 2**14),
        # Ranks 1.5, −1.5, 3 and 4: of the 16 patterns of signs, 1 has the sum 10 and 2 have 8.5.
        ([1, 0, 2, 3], [0, 1, 0, 0], 6 / 16),
        # Equal pairs are left out: as with three positive differences.
        ([1, 2, 3, 7], [0, 0, 0, 7], 2 / 8),
        ([0.5, 0.5], [0.5, 0.5], None),
    ],
)
def test_signed_rank_p_by_hand(first: list[float], second: list[float], p: float | None) -> None:
    assert compute_wilcoxon_p(first, second) == p


@pytest.mark.parametrize("n", [9, 60, 300])
def test_without_ties_signed_rank_p_agrees_with_scipys_exact_one(n: int) -> None:
    generator = np.random.default_rng(n)
    differences = (np.arange(n) + 1) * generator.choice([-1, 1], n, p=[0.4, 0.6])
    expected = scipy.stats.wilcoxon(differences, method="exact").pvalue
    assert compute_wilcoxon_p(differences.tolist(), [0] * n) == pytest.approx(expected, rel=1e-9)


def test_signed_rank_p_of_thousands_of_pairs_is_the_normal_approximation() -> None:
    differences = [1.0] * 1100 + [-1.0] * 1000
    assert compute_wilcoxon_p(differences, [0] * 2100) == scipy.stats.wilcoxon(differences).pvalue
