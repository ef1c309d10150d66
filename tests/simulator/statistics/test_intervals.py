from __future__ import annotations

from itertools import product

import numpy as np
import pytest
import scipy.stats
from hypothesis import given
from hypothesis import strategies as st

from hallulab.simulator.statistics.intervals import (
    Estimate,
    Ratio,
    adjust_by_holm,
    compare_pairs,
    compute_interval,
    compute_least_pairs,
    compute_ratio_of_sums,
    estimate_pairs_needed,
    explain_no_interval,
)

counts = st.lists(st.tuples(st.integers(0, 5), st.integers(1, 6)), min_size=2, max_size=5)


def ratios(*pairs: tuple[int, int]) -> list[Ratio]:
    return [Ratio(*pair) for pair in pairs]


def test_ratio_of_sums_weighs_by_the_denominator() -> None:
    assert compute_ratio_of_sums(ratios((1, 1), (0, 3))) == 0.25
    assert compute_ratio_of_sums([]) is None


@pytest.mark.parametrize("number", [0, 1, 2, 5])
def test_there_is_no_interval_below_six_conversations(number: int) -> None:
    assert compute_interval(ratios(*[(0, 1), (1, 1), (0, 2), (1, 2), (2, 2)][:number])) is None


def test_six_conversations_have_an_interval() -> None:
    # Draws of none of the three with 1 and of nothing but them have p = 1/64 each, less than the 2.5% tails.
    assert compute_interval(ratios(*[(0, 1), (1, 1)] * 3)) == (pytest.approx(1 / 6), pytest.approx(5 / 6))


@pytest.mark.parametrize("equal", [[(1, 2), (2, 4), (3, 6)], [(0, 2)] * 3, [(1, 3), (2, 6), (7, 21)]])
def test_an_interval_of_no_width_is_none(equal: list[tuple[int, int]]) -> None:
    assert compute_interval(ratios(*equal * 2)) is None


def test_a_difference_that_is_the_same_with_every_persona_has_no_interval() -> None:
    # In floating point, resamples of these differ in the last digit.
    first, second = [(number, 10) for number in range(7)], [(number + 1, 10) for number in range(7)]
    found = compare_pairs(ratios(*second), ratios(*first))
    assert (found.difference, found.ci95) == (pytest.approx(0.1), None)


def test_why_an_interval_of_no_width_is_missing() -> None:
    assert explain_no_interval(6, found={"HPT-1": (0.0, 0.5)}) is None
    assert explain_no_interval(5, found={"HPT-1": None}) == "5 personas; 6 needed for an interval"
    assert explain_no_interval(6, found={"HPT-1": None, "TokAcc-1": None}) == (
        "every persona has the same HPT-1 and TokAcc-1"
    )


def test_why_there_is_no_interval() -> None:
    assert explain_no_interval(2) == "2 personas; 6 needed for an interval"
    assert explain_no_interval(1, "group") == "1 group; 6 needed for an interval"
    assert explain_no_interval(6) is None


def test_interval_agrees_with_scipy_on_a_larger_sample() -> None:
    generator = np.random.default_rng(7)
    over, under = generator.integers(0, 4, 40), generator.integers(2, 6, 40)
    expected = scipy.stats.bootstrap(
        (over, under),
        lambda a, b, axis: a.sum(axis=axis) / b.sum(axis=axis),
        paired=True,
        vectorized=True,
        method="percentile",
        rng=np.random.default_rng(1),
    ).confidence_interval
    found = compute_interval([Ratio(int(a), int(b)) for a, b in zip(over, under, strict=True)])
    assert found == pytest.approx((expected.low, expected.high), abs=0.01)


def test_exact_permutation_p_by_hand() -> None:
    # Differences 2, 1, 1 per pair: of the 8 exchanges only the observed one and its mirror reach 4/3.
    found = compare_pairs(ratios((2, 1), (1, 1), (1, 1)), ratios((0, 1), (0, 1), (0, 1)))
    assert (found.pairs, found.p_value) == (3, 0.25)
    assert found.difference == pytest.approx(4 / 3)


def test_no_difference_has_p_one() -> None:
    found = compare_pairs(ratios((1, 2), (2, 2)), ratios((1, 2), (2, 2)))
    assert (found.difference, found.ci95, found.p_value) == (0.0, None, 1.0)


def test_six_pairs_are_the_first_with_an_interval_and_with_a_p_below_five_percent() -> None:
    five = compare_pairs(ratios(*[(1, 1)] * 5), ratios(*[(0, 1)] * 5))
    six = compare_pairs(ratios(*[(1, 1), (1, 2)] * 3), ratios(*[(0, 1), (0, 2)] * 3))
    assert (five.ci95, five.p_value) == (None, 0.0625)
    assert (six.ci95, six.p_value) == ((pytest.approx(6 / 11), pytest.approx(6 / 7)), 0.03125)


def test_one_pair_has_a_difference_and_no_p() -> None:
    found = compare_pairs(ratios((1, 2)), ratios((0, 2)))
    assert (found.pairs, found.difference, found.ci95, found.p_value) == (1, 0.5, None, None)


def test_no_pairs_have_nothing() -> None:
    found = compare_pairs([], [])
    assert (found.pairs, found.difference, found.ci95, found.p_value) == (0, None, None, None)


def test_samples_of_different_length_cannot_be_paired() -> None:
    with pytest.raises(ValueError, match="cannot be paired"):
        compare_pairs(ratios((1, 2)), [])


def scipy_p(first: list[Ratio], second: list[Ratio], resamples: float) -> float:
    """The same test by scipy: it exchanges indices of conversations within pairs."""
    both = first + second
    over = np.array([item.numerator for item in both])
    under = np.array([item.denominator for item in both])

    def statistic(x: np.ndarray, y: np.ndarray) -> float:
        x, y = x.astype(int), y.astype(int)
        return float(over[x].sum() / under[x].sum() - over[y].sum() / under[y].sum())

    result = scipy.stats.permutation_test(
        (np.arange(len(first)), np.arange(len(first), len(both))),
        statistic,
        permutation_type="samples",
        n_resamples=resamples,
        rng=np.random.default_rng(3),
    )
    return float(result.pvalue)


def test_exact_permutation_p_agrees_with_scipy() -> None:
    first = ratios((3, 4), (0, 3), (2, 2), (5, 4), (1, 3), (2, 5))
    second = ratios((1, 3), (1, 4), (0, 2), (2, 4), (1, 2), (0, 3))
    assert compare_pairs(first, second).p_value == pytest.approx(scipy_p(first, second, np.inf))


def test_sampled_permutation_p_agrees_with_scipy() -> None:
    generator = np.random.default_rng(11)
    first = [Ratio(int(generator.integers(0, 5)), 3) for _ in range(30)]
    second = [Ratio(int(generator.integers(0, 4)), 4) for _ in range(30)]
    assert compare_pairs(first, second).p_value == pytest.approx(scipy_p(first, second, 9999), abs=0.02)


def test_a_sampled_p_and_its_interval_are_the_same_every_time() -> None:
    first, second = [Ratio(k % 3, 4) for k in range(20)], [Ratio(k % 4, 4) for k in range(20)]
    assert compare_pairs(first, second) == compare_pairs(first, second)


def test_a_sampled_p_is_never_zero() -> None:
    found = compare_pairs(ratios(*[(3, 3)] * 30), ratios(*[(0, 3)] * 30))
    assert found.p_value == 1 / 10_001


@given(counts, st.data())
def test_exact_p_equals_plain_enumeration(first: list[tuple[int, int]], data: st.DataObject) -> None:
    second = data.draw(
        st.lists(st.tuples(st.integers(0, 5), st.integers(1, 6)), min_size=len(first), max_size=len(first))
    )

    def distance(swaps: tuple[int, ...]) -> float:
        left = [b if swap else a for a, b, swap in zip(first, second, swaps, strict=True)]
        right = [a if swap else b for a, b, swap in zip(first, second, swaps, strict=True)]
        return abs(
            sum(n for n, _ in left) / sum(d for _, d in left)
            - sum(n for n, _ in right) / sum(d for _, d in right)
        )

    observed = distance((0,) * len(first))
    every = list(product((0, 1), repeat=len(first)))
    hits = sum(distance(swaps) >= observed - 1e-12 for swaps in every)
    assert compare_pairs(ratios(*first), ratios(*second)).p_value == hits / len(every)


def test_holm_by_hand() -> None:
    assert adjust_by_holm([0.01, 0.04, 0.03, 0.005]) == pytest.approx((0.03, 0.06, 0.06, 0.02))


def test_holm_leaves_out_what_was_not_tested() -> None:
    assert adjust_by_holm([None, 0.02, None, 0.5]) == (None, 0.04, None, 0.5)


def test_holm_stops_at_one() -> None:
    assert adjust_by_holm([0.6, 0.7]) == (1.0, 1.0)


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
