from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hallulab.simulator.metrics.comparison import Estimate, compute_least_pairs, estimate_pairs_needed
from hallulab.simulator.statistics.intervals import Ratio, adjust_by_holm


def rates(*numerators: int) -> list[Ratio]:
    """Ratios over two turns each."""
    return [Ratio(numerator, 2) for numerator in numerators]


def test_pairs_needed_by_hand() -> None:
    # Differences 0.5 and 0: mean 0.25, sd 0.3536. (1.95996 + 0.84162)² = 7.8489, times 2: 15.698.
    assert estimate_pairs_needed(rates(1, 1), rates(0, 1)) == Estimate(16, None)


def test_the_order_of_the_two_does_not_matter() -> None:
    # Differences 1, 0.5, 0.5: mean 2/3, sd 0.2887. 7.8489 · 0.1875 = 1.4717.
    assert estimate_pairs_needed(rates(2, 1, 1), rates(0, 0, 0)).pairs == 2
    assert estimate_pairs_needed(rates(0, 0, 0), rates(2, 1, 1)).pairs == 2


def test_a_pair_counts_as_much_as_any_other_however_long() -> None:
    # Of 4 of 8 turns and 0 of 1: differences 0.5 and 0, as in the first test.
    assert estimate_pairs_needed([Ratio(4, 8), Ratio(0, 1)], [Ratio(0, 3), Ratio(0, 5)]).pairs == 16


@pytest.mark.parametrize(
    ("first", "second", "reason"),
    [
        ([], [], "fewer than two personas can be compared"),
        ([1], [0], "fewer than two personas can be compared"),
        ([1, 0], [0, 1], "on average they do not differ at all"),
        ([1, 1], [1, 1], "on average they do not differ at all"),
        ([1, 2], [0, 1], "they differ by the same with every persona, so there is no spread to go by"),
    ],
)
def test_what_cannot_be_estimated_has_the_reason(first: list[int], second: list[int], reason: str) -> None:
    assert estimate_pairs_needed(rates(*first), rates(*second)) == Estimate(None, reason)


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
