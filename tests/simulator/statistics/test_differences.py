from __future__ import annotations

from itertools import product

import numpy as np
import pytest
import scipy.stats
from hypothesis import given
from hypothesis import strategies as st

from hallulab.simulator.statistics.differences import (
    adjust_by_holm,
    compare_all_pairs,
    compare_pairs,
    compare_unpaired,
    compute_pseudo_values,
    flip_signs,
)
from hallulab.simulator.statistics.intervals import Ratio, bound_zero_rate, compute_interval

T5 = 2.570582
"""The 97.5% quantile of Student's t with 5 degrees of freedom, from a table."""
pairs_of_ratios = st.lists(
    st.tuples(*[st.tuples(st.integers(0, 5), st.integers(1, 6))] * 2), min_size=2, max_size=8
)


def ratios(*pairs: tuple[int, int]) -> list[Ratio]:
    return [Ratio(*pair) for pair in pairs]


def test_pseudo_values_of_equal_lengths_are_the_differences() -> None:
    found = compute_pseudo_values(ratios((2, 2), (0, 2), (1, 2)), ratios((1, 4), (0, 4), (3, 4)))
    assert found == pytest.approx([0.75, 0.0, -0.25])


def test_pseudo_values_of_unequal_lengths_by_hand() -> None:
    # 2/3 - 1/2. Without the first: 1/2 - 1. Without the second: 1 - 0. Twice the whole less these.
    assert compute_pseudo_values(ratios((1, 1), (1, 2)), ratios((0, 2), (2, 2))) == pytest.approx(
        [5 / 6, -2 / 3]
    )


def test_exact_p_by_hand() -> None:
    # Differences 2, 1, 1: of the 8 flips only the observed one and its mirror reach 4.
    found = compare_pairs(ratios((2, 1), (1, 1), (1, 1)), ratios((0, 1), (0, 1), (0, 1)), "rate")
    assert (found.pairs, found.p_value) == (3, 0.25)
    assert found.difference == pytest.approx(4 / 3)


def test_the_interval_of_a_difference_by_hand() -> None:
    # Differences 1, 0 thrice: mean 0.5, sd √0.3, error √0.05.
    found = compare_pairs(ratios(*[(1, 1), (0, 1)] * 3), ratios(*[(0, 2)] * 6), "rate")
    assert found.ci95 == pytest.approx((0.5 - T5 * 0.05**0.5, 0.5 + T5 * 0.05**0.5), rel=1e-5)
    assert found.p_value == 0.25


def test_no_difference_has_p_one() -> None:
    found = compare_pairs(ratios((1, 2), (2, 2)), ratios((1, 2), (2, 2)), "rate")
    assert (found.difference, found.ci95, found.p_value) == (0.0, None, 1.0)


def test_two_without_hallucinations_are_bounded_by_the_bounds_of_each() -> None:
    # 3.688879 · (2.570582 / 1.959964)² / 12 and / 24 turns.
    found = compare_pairs(ratios(*[(0, 2)] * 6), ratios(*[(0, 4)] * 6), "rate")
    assert (found.difference, found.p_value) == (0.0, 1.0)
    assert found.ci95 == pytest.approx((-0.264393, 0.528786), rel=1e-5)


def test_two_with_all_tokens_right_are_bounded_by_the_personas() -> None:
    # 1 - 0.025^(1/6)
    found = compare_pairs(ratios(*[(8, 8)] * 6), ratios(*[(9, 9)] * 6), "share")
    assert found.ci95 == pytest.approx((-0.459258, 0.459258), rel=1e-5)


def test_a_difference_that_is_the_same_with_every_persona_has_no_interval() -> None:
    # In floating point, the numbers without each differ in the last digit.
    first, second = [(number, 10) for number in range(7)], [(number + 1, 10) for number in range(7)]
    found = compare_pairs(ratios(*second), ratios(*first), "rate")
    assert (found.difference, found.ci95) == (pytest.approx(0.1), None)


def test_six_pairs_are_the_first_with_an_interval_and_with_a_p_below_five_percent() -> None:
    five = compare_pairs(ratios(*[(1, 1), (2, 1)] * 3)[:5], ratios(*[(0, 1)] * 5), "rate")
    six = compare_pairs(ratios(*[(1, 1), (2, 1)] * 3), ratios(*[(0, 1)] * 6), "rate")
    assert (five.ci95, five.p_value) == (None, 0.0625)
    assert six.p_value == 0.03125
    assert six.ci95 == pytest.approx((1.5 - T5 * 0.05**0.5, 1.5 + T5 * 0.05**0.5), rel=1e-5)


def test_one_pair_has_a_difference_and_no_p() -> None:
    found = compare_pairs(ratios((1, 2)), ratios((0, 2)), "rate")
    assert (found.pairs, found.difference, found.ci95, found.p_value) == (1, 0.5, None, None)


def test_no_pairs_have_nothing() -> None:
    found = compare_pairs([], [], "rate")
    assert (found.pairs, found.difference, found.ci95, found.p_value) == (0, None, None, None)


def test_samples_of_different_length_cannot_be_paired() -> None:
    with pytest.raises(ValueError, match="cannot be paired"):
        compare_pairs(ratios((1, 2)), [], "rate")


def test_a_drawn_p_agrees_with_scipy() -> None:
    values = np.random.default_rng(11).normal(0.2, 1.0, 30)
    expected = scipy.stats.permutation_test(
        (values,), np.mean, permutation_type="samples", n_resamples=9999, rng=np.random.default_rng(3)
    )
    assert flip_signs(values[:, None])[0] == pytest.approx(float(expected.pvalue), abs=0.02)


def test_a_drawn_p_is_never_zero_and_the_same_every_time() -> None:
    sample = ratios(*[(3, 3)] * 30), ratios(*[(0, 3)] * 30), "rate"
    assert compare_pairs(*sample).p_value == 1 / 10_001
    assert compare_all_pairs([sample, sample]) == [compare_pairs(*sample)] * 2


@given(pairs_of_ratios)
def test_exact_p_equals_plain_enumeration(pairs: list[tuple[tuple[int, int], tuple[int, int]]]) -> None:
    first, second = (ratios(*side) for side in zip(*pairs, strict=True))
    values = compute_pseudo_values(first, second).tolist()
    sums = [
        abs(sum(sign * value for sign, value in zip(signs, values, strict=True)))
        for signs in product((1, -1), repeat=len(values))
    ]
    hits = sum(one >= sums[0] - 1e-9 * sum(map(abs, values)) - 1e-15 for one in sums)
    assert compare_pairs(first, second, "rate").p_value == hits / len(sums)


@given(pairs_of_ratios, st.integers(1, 6))
def test_equal_lengths_have_the_p_of_exchanged_conversations(
    pairs: list[tuple[tuple[int, int], tuple[int, int]]], turns: int
) -> None:
    first, second = ([one for one, _ in side] for side in zip(*pairs, strict=True))
    exchanged = [
        abs(sum(b - a if swap else a - b for a, b, swap in zip(first, second, swaps, strict=True)))
        for swaps in product((False, True), repeat=len(pairs))
    ]
    hits = sum(one >= exchanged[0] for one in exchanged)
    found = compare_pairs(*([Ratio(one, turns) for one in side] for side in (first, second)), "rate")
    assert found.p_value == hits / len(exchanged)


@given(pairs_of_ratios, st.integers(2, 9))
def test_the_other_order_mirrors_and_another_unit_stretches(
    pairs: list[tuple[tuple[int, int], tuple[int, int]]], times: int
) -> None:
    first, second = (ratios(*side) for side in zip(*pairs, strict=True))
    found, other = compare_pairs(first, second, "rate"), compare_pairs(second, first, "rate")
    more = compare_pairs(
        *([Ratio(one.numerator * times, one.denominator) for one in side] for side in (first, second)), "rate"
    )
    assert found.difference is not None
    assert (other.difference, more.difference) == pytest.approx((-found.difference, found.difference * times))
    assert found.p_value == other.p_value == more.p_value
    if found.ci95 is not None:
        low, high = found.ci95
        assert low <= found.difference <= high
        assert other.ci95 == pytest.approx((-high, -low))
        if any(one.numerator for one in (*first, *second)):
            assert more.ci95 == pytest.approx((low * times, high * times))


def test_unpaired_by_hand() -> None:
    first, second = ratios(*[(1, 1), (0, 1)] * 3), ratios(*[(0, 1)] * 5, *[(1, 1)] * 2)
    (low, high), (other_low, other_high) = (
        compute_interval(sample, "rate") or (0, 0) for sample in (first, second)
    )
    found = compare_unpaired(first, second, "rate")
    assert found.difference == pytest.approx(0.5 - 2 / 7)
    assert found.ci95 == pytest.approx(
        (
            0.5 - 2 / 7 - ((0.5 - low) ** 2 + (other_high - 2 / 7) ** 2) ** 0.5,
            0.5 - 2 / 7 + ((high - 0.5) ** 2 + (2 / 7 - other_low) ** 2) ** 0.5,
        )
    )


def test_a_group_without_hallucinations_is_not_certain() -> None:
    some, none = ratios(*[(1, 2), (0, 2), (2, 2)] * 2), ratios(*[(0, 2)] * 6)
    low, high = compute_interval(some, "rate") or (0, 0)
    assert compare_unpaired(none, some, "rate").ci95 == pytest.approx(
        (-high, -0.5 + (bound_zero_rate(6, 12) ** 2 + (0.5 - low) ** 2) ** 0.5)
    )


def test_the_unpaired_test_counts_in_standard_errors() -> None:
    # Two that vary and six that do not: each of the 28 exchanges is as far; in turns only seven are.
    assert compare_unpaired(ratios((0, 1), (6, 1)), ratios(*[(1, 1)] * 6), "rate").p_value == 1.0


def test_the_unpaired_test_enumerates_or_draws_all_exchanges() -> None:
    one, other = ratios((1, 1), (1, 1), (0, 1)), ratios(*[(0, 1)] * 3)
    assert compare_unpaired(one, other, "rate").p_value == 0.4  # 8 of the 20 groups have both of one kind
    many = compare_unpaired(ratios(*[(1, 1)] * 12), ratios(*[(0, 1)] * 12), "rate")
    assert many.p_value == pytest.approx(1 / 10_001)
    assert compare_unpaired(one[:1], other[:1], "rate").p_value is None
    assert compare_unpaired([], other, "rate").difference is None


def test_one_hallucination_of_short_conversations_is_no_difference_from_long_ones_without_any() -> None:
    short, long = ratios((1, 2), *[(0, 2)] * 5), ratios(*[(0, 5)] * 6)
    assert compare_unpaired(short, long, "rate").p_value == 1.0
    assert compare_unpaired(long, short, "rate").p_value == 1.0


def test_few_unpaired_have_no_interval_and_two_without_hallucinations_have_one() -> None:
    six = ratios(*[(0, 2)] * 6)
    assert compare_unpaired(six[:5], six, "rate").ci95 is None
    assert compare_unpaired(six, six, "rate").ci95 == pytest.approx((-0.528786, 0.528786), rel=1e-5)


def test_two_equal_chatbots_are_told_apart_in_about_5_percent_of_runs() -> None:
    """The most is three standard errors of 250 runs above 5%; docs/studies/validity.md has 4,000 runs."""
    random = np.random.default_rng(0)
    rates = random.gamma(2, 1 / 2, (250, 13))
    first, second = (random.poisson(2 * rates).tolist() for _ in range(2))
    samples = [
        [ratios(*((count, 2) for count in run)) for run in pair] for pair in zip(first, second, strict=True)
    ]
    found = compare_all_pairs([(one, other, "rate") for one, other in samples])
    assert sum((one.p_value or 0) < 0.05 for one in found) / 250 <= 0.09
    assert sum(low <= 0 <= high for low, high in (one.ci95 for one in found if one.ci95)) / 250 >= 0.9


def test_holm_by_hand() -> None:
    assert adjust_by_holm([0.01, 0.04, 0.03, 0.005]) == pytest.approx((0.03, 0.06, 0.06, 0.02))


def test_holm_leaves_out_what_was_not_tested() -> None:
    assert adjust_by_holm([None, 0.02, None, 0.5]) == (None, 0.04, None, 0.5)


def test_holm_stops_at_one() -> None:
    assert adjust_by_holm([0.6, 0.7]) == (1.0, 1.0)
