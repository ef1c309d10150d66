from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hallulab.simulator.statistics.intervals import (
    Kind,
    Ratio,
    Scale,
    bound_zero_rate,
    compute_interval,
    compute_jackknife_error,
    compute_kappa,
    compute_kappa_interval,
    compute_plain_interval,
    compute_ratio_of_sums,
    compute_share_interval,
    compute_t_interval,
    explain_no_interval,
    leave_out_ratios,
)

T5 = 2.570582
"""The 97.5% quantile of Student's t with 5 degrees of freedom, from a table."""
HALVES = [Ratio(0, 2), Ratio(1, 2)] * 3
"""6 personas, 3 of 12: without a 0, 3 of 10; without a 1, 2 of 10. Error: √(5/6 · 6 · 0.05²) = 0.111803."""
samples = st.lists(st.tuples(st.integers(0, 5), st.integers(1, 6)), min_size=6, max_size=12)


def ratios(*pairs: tuple[int, int]) -> list[Ratio]:
    return [Ratio(*pair) for pair in pairs]


def test_ratio_of_sums_weighs_by_the_denominator() -> None:
    assert compute_ratio_of_sums(ratios((1, 1), (0, 3))) == 0.25
    assert compute_ratio_of_sums([]) is None


def test_why_there_is_no_interval() -> None:
    assert explain_no_interval(2) == "2 personas; 6 needed for an interval"
    assert explain_no_interval(1, "group") == "1 group; 6 needed for an interval"
    assert explain_no_interval(6) is None


def test_why_an_interval_of_no_width_is_missing() -> None:
    assert explain_no_interval(6, found={"HPT-1": (0.0, 0.5)}) is None
    assert explain_no_interval(5, found={"HPT-1": None}) == "5 personas; 6 needed for an interval"
    assert explain_no_interval(6, found={"HPT-1": None, "TokAcc-1": None}) == (
        "every persona has the same HPT-1 and TokAcc-1"
    )


def test_a_ratio_without_each_persona_by_hand() -> None:
    assert leave_out_ratios(ratios((1, 4), (2, 2), (0, 2))).tolist() == [0.5, 1 / 6, 0.5]


def test_the_jackknife_error_of_a_mean_is_that_of_a_mean() -> None:
    # Of 1, 2, 3: sd 1, so 1/√3. Without each: 2.5, 2, 1.5.
    assert compute_jackknife_error(np.array([2.5, 2.0, 1.5])) == pytest.approx(3**-0.5)


@pytest.mark.parametrize(
    ("scale", "value", "bounds"),
    [
        ("plain", 0.5, (0.5 - 0.1 * T5, 0.5 + 0.1 * T5)),
        ("log", 0.5, (0.5 * math.exp(-0.2 * T5), 0.5 * math.exp(0.2 * T5))),
        ("logit", 0.5, (1 / (1 + math.exp(0.4 * T5)), 1 / (1 + math.exp(-0.4 * T5)))),
        ("arcsine", 0.5, (math.sin(math.pi / 4 - 0.1 * T5) ** 2, math.sin(math.pi / 4 + 0.1 * T5) ** 2)),
        ("fisher", 0.0, (-math.tanh(0.1 * T5), math.tanh(0.1 * T5))),
    ],
)
def test_bounds_on_each_scale_by_hand(scale: Scale, value: float, bounds: tuple[float, float]) -> None:
    assert compute_t_interval(value, 0.1, 5, scale) == pytest.approx(bounds, rel=1e-6)


@pytest.mark.parametrize(
    ("scale", "value"), [("log", 0.0), ("logit", 0.0), ("logit", 1.0), ("fisher", 1.0), ("fisher", -1.0)]
)
def test_the_end_of_a_range_has_no_place_on_the_scale(scale: Scale, value: float) -> None:
    assert compute_t_interval(value, 0.1, 5, scale) is None


def test_a_rate_by_hand() -> None:
    step = math.exp(T5 * 0.111803 / 0.25)
    assert compute_interval(HALVES, "rate") == pytest.approx((0.25 / step, 0.25 * step), rel=1e-5)


def test_a_share_by_hand() -> None:
    # ln(1/3) ± 2.570582 · 0.111803 / (1/4 · 3/4)
    low, high = (math.log(1 / 3) + sign * T5 * 0.111803 / 0.1875 for sign in (-1, 1))
    found = compute_interval(HALVES, "share")
    assert found == pytest.approx((1 / (1 + math.exp(-low)), 1 / (1 + math.exp(-high))), rel=1e-5)


def test_no_hallucination_in_twelve_turns_of_six_personas() -> None:
    # 3.688879 · (2.570582 / 1.959964)² / 12
    assert compute_interval([Ratio(0, 2)] * 6, "rate") == (0.0, pytest.approx(0.528786, rel=1e-5))


def test_many_personas_have_garwoods_bound() -> None:
    assert bound_zero_rate(10**7, 1.0) == pytest.approx(3.6889, abs=1e-4)


def test_a_share_of_one_and_of_none_counts_personas() -> None:
    # 0.025^(1/6) = 0.540742
    one, none = compute_interval([Ratio(9, 9)] * 6, "share"), compute_interval([Ratio(0, 9)] * 6, "share")
    assert one == (pytest.approx(0.540742, rel=1e-6), 1.0)
    assert none == (0.0, pytest.approx(0.459258, rel=1e-6))


@pytest.mark.parametrize("kind", ["rate", "share"])
def test_five_personas_and_equal_ones_have_no_interval(kind: Kind) -> None:
    assert compute_interval(HALVES[:5], kind) is None
    assert compute_interval(ratios((1, 2), (2, 4), (3, 6)) * 2, kind) is None


def test_one_persona_with_nearly_all_turns_has_a_finite_bound() -> None:
    # The relative error is at most √(2 · 6/5) = 1.549; the jackknife alone says 1,630.
    low, high = compute_interval(ratios(*[(1, 1)] * 5, (0, 10_000)), "rate") or (0, 0)
    assert high / (5 / 10_005) == pytest.approx(math.exp(T5 * 2.4**0.5), rel=1e-5)
    assert low > 0


@given(samples)
def test_an_interval_holds_its_estimate(sample: list[tuple[int, int]]) -> None:
    value = sum(one for one, _ in sample) / sum(turns for _, turns in sample)
    low, high = compute_interval(ratios(*sample), "rate") or (value, value)
    assert low <= value <= high < math.inf
    shares = [(min(one, turns), turns) for one, turns in sample]
    share = sum(one for one, _ in shares) / sum(turns for _, turns in shares)
    low, high = compute_interval(ratios(*shares), "share") or (share, share)
    assert 0 <= low <= share + 1e-12
    assert share - 1e-12 <= high <= 1


@given(samples, st.integers(2, 9))
def test_a_rate_in_another_unit_has_its_bounds_in_it(sample: list[tuple[int, int]], times: int) -> None:
    whole = compute_interval(ratios(*sample), "rate")
    more = compute_interval(ratios(*((one * times, turns) for one, turns in sample)), "rate")
    if not any(one for one, _ in sample):
        assert more == whole
    elif whole is None:
        assert more is None
    else:
        assert more == pytest.approx((whole[0] * times, whole[1] * times))


@given(samples)
def test_a_share_and_its_complement_are_mirrored(sample: list[tuple[int, int]]) -> None:
    shares = [(min(one, turns), turns) for one, turns in sample]
    found = compute_interval(ratios(*shares), "share")
    rest = compute_interval(ratios(*((turns - one, turns) for one, turns in shares)), "share")
    assert (found is None) == (rest is None)
    if found is not None and rest is not None:
        assert rest == pytest.approx((1 - found[1], 1 - found[0]))


@pytest.mark.parametrize("personas", [6, 13])
@pytest.mark.parametrize("hpt", [0.1, 1.2])
def test_95_percent_of_intervals_have_the_truth(personas: int, hpt: float) -> None:
    """The least is three standard errors of 250 runs below 92%; docs/studies/validity.md has 2,000 runs."""
    random = np.random.default_rng(personas)
    counts = random.poisson(2 * hpt * random.gamma(2, 1 / 2, (250, personas)))
    bounds = [compute_interval([Ratio(int(one), 2) for one in run], "rate") for run in counts]
    intervals = [one for one in bounds if one is not None]
    assert len(intervals) >= 245
    assert sum(low <= hpt <= high for low, high in intervals) / len(intervals) >= 0.87


def test_a_share_that_is_not_defined_without_a_group_has_no_interval() -> None:
    assert compute_share_interval(0.5, np.array([0.5, np.nan, 0.4]), 3) is None


def test_the_same_difference_without_each_persona_has_no_interval() -> None:
    assert compute_plain_interval(0.3, np.full(6, 0.3)) is None


def test_kappa_by_hand() -> None:
    # 20 both, 5 and 10 one alone, 15 neither: agreement 0.7, by chance 0.5 (the example of many textbooks).
    assert compute_kappa(np.array([20.0, 5.0, 10.0, 15.0])) == pytest.approx(0.4)


@pytest.mark.parametrize("table", [[3, 0, 0, 0], [0, 0, 0, 3]])
def test_kappa_of_equal_ratings_is_not_defined(table: list[float]) -> None:
    assert np.isnan(compute_kappa(np.array(table, dtype=float)))


def test_the_interval_of_kappa_has_cohens_error_where_personas_are_alike() -> None:
    # 6 personas with the same table: no jackknife error. Cohen's: √(0.7 · 0.3 / 300) / 0.5 = 0.052915.
    found = compute_kappa_interval(np.array([[20.0, 5.0, 10.0, 15.0]] * 6))
    low, high = (math.tanh(math.atanh(0.4) + sign * T5 * 0.052915 / 0.84) for sign in (-1, 1))
    assert found == pytest.approx((low, high), rel=1e-5)


def test_the_interval_of_kappa_has_the_jackknifes_error_where_personas_differ() -> None:
    # Agreement is whole with half of the personas, and by chance with the others.
    tables = np.array([[5.0, 0.0, 0.0, 5.0], [3.0, 2.0, 2.0, 3.0]] * 3)
    left_out = [(tables.sum(axis=0) - table) @ [1, -1, -1, 1] / 50 for table in tables]  # chance is 1/2
    error = math.sqrt(5 / 6 * sum((value - np.mean(left_out)) ** 2 for value in left_out))
    assert error > math.sqrt(0.8 * 0.2 / 60) / 0.5
    low, high = (math.tanh(math.atanh(0.6) + sign * T5 * error / 0.64) for sign in (-1, 1))
    assert compute_kappa_interval(tables) == pytest.approx((low, high), rel=1e-5)


def test_whole_agreement_has_a_lower_bound() -> None:
    # 0.025^(1/6) = 0.540742 of the turns; by chance 1/2.
    assert compute_kappa_interval(np.array([[1.0, 0.0, 0.0, 1.0]] * 6)) == (
        pytest.approx(0.081484, abs=1e-6),
        1.0,
    )


@pytest.mark.parametrize(
    "tables",
    [
        [[1, 0, 0, 1]] * 5 + [[0, 0, 0, 0]],  # five personas with turns
        [[0, 0, 0, 2]] * 5 + [[1, 0, 0, 1]],  # all flags are of one persona
        [[0, 0, 0, 2]] * 6,
    ],
)
def test_kappa_without_an_interval(tables: list[list[float]]) -> None:
    assert compute_kappa_interval(np.array(tables, dtype=float)) is None


@given(st.lists(st.tuples(*[st.integers(0, 5)] * 4), min_size=6, max_size=9))
def test_the_interval_of_kappa_holds_it_whoever_is_first(tables: list[tuple[int, int, int, int]]) -> None:
    found = compute_kappa_interval(np.array(tables, dtype=float))
    other = compute_kappa_interval(np.array(tables, dtype=float)[:, [0, 2, 1, 3]])
    assert found == (None if other is None else pytest.approx(other))
    if found is not None:
        value = float(compute_kappa(np.array(tables, dtype=float).sum(axis=0)))
        assert -1 <= found[0] <= value + 1e-9
        assert value - 1e-9 <= found[1] <= 1
