from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hallulab.simulator.statistics.differences import adjust_by_holm
from hallulab.simulator.statistics.intervals import Ratio
from hallulab.simulator.statistics.planning import (
    PairsPlan,
    compute_least_pairs,
    compute_power,
    find_least_pairs,
    plan_pairs,
)


def rates(*numerators: int) -> list[Ratio]:
    """Ratios over two turns each."""
    return [Ratio(numerator, 2) for numerator in numerators]


@pytest.mark.parametrize(("effect", "pairs"), [(0.2, 199), (0.5, 34), (0.8, 15)])
def test_pairs_of_cohens_small_medium_and_large_effect(effect: float, pairs: int) -> None:
    # The values of G*Power for a paired t test, two-sided, 5%, power 80%.
    assert find_least_pairs(effect) == pairs
    assert compute_power(pairs, effect) >= 0.8 > compute_power(pairs - 1, effect)


def test_a_plan_by_hand() -> None:
    # Differences 0.5, 0 thrice: sd 0.273861. Upper 80% limit: · √(5 / 2.342534) = 0.400108. 0.2 / 0.4 = 0.5.
    assert plan_pairs(rates(1, 0, 1, 0, 1, 0), rates(0, 0, 0, 0, 0, 0)) == PairsPlan(34, None)


def test_the_measured_difference_does_not_matter() -> None:
    assert plan_pairs(rates(9, 8, 9, 8, 9, 8), rates(0, 0, 0, 0, 0, 0)) == PairsPlan(34, None)
    assert plan_pairs(rates(0, 0, 0, 0, 0, 0), rates(1, 0, 1, 0, 1, 0)) == PairsPlan(34, None)


def test_a_plan_has_six_personas_or_more() -> None:
    assert plan_pairs(rates(1, 0, 1, 0, 1, 0), rates(0, 0, 0, 0, 0, 0), margin=5.0) == PairsPlan(6, None)


def test_why_nothing_is_planned() -> None:
    few = "fewer than 6 personas say too little of how much pairs vary"
    same = "they differ by the same with every persona, so nothing says how much pairs vary"
    assert plan_pairs(rates(1, 0, 1, 0, 1), rates(0, 0, 0, 0, 0)) == PairsPlan(None, few)
    assert plan_pairs(rates(1, 2, 1, 1, 1, 1), rates(0, 1, 0, 0, 0, 0)) == PairsPlan(None, same)


@given(st.floats(0.05, 2), st.floats(1.01, 3))
def test_a_smaller_effect_never_needs_fewer(effect: float, times: float) -> None:
    assert find_least_pairs(effect) >= find_least_pairs(effect * times)


@pytest.mark.parametrize(("comparisons", "pairs"), [(0, 6), (1, 6), (3, 7), (10, 9)])
def test_least_pairs_by_hand(comparisons: int, pairs: int) -> None:
    # 10 · 2/2^9 = 0.039, 10 · 2/2^8 = 0.078.
    assert compute_least_pairs(comparisons) == pairs


@given(st.integers(1, 200))
def test_with_one_pair_less_no_test_can_find_anything(comparisons: int) -> None:
    def smallest(pairs: int) -> float:
        return min(p for p in adjust_by_holm([2 / 2**pairs] * comparisons) if p is not None)

    enough = compute_least_pairs(comparisons)
    assert smallest(enough) < 0.05
    assert enough == 6 or smallest(enough - 1) >= 0.05
