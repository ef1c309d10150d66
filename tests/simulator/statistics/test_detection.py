"""Numbers of a sample: exact values by hand, agreement with scikit-learn, None where nothing is defined."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.metrics import average_precision_score, balanced_accuracy_score, roc_auc_score

from hallulab.simulator.statistics import detection
from hallulab.simulator.statistics.detection import (
    Bin,
    Sample,
    compute_auroc,
    compute_average_precision,
    compute_brier,
    compute_calibration_error,
    compute_detection_intervals,
    compute_f1_interval,
    compute_flag_scores,
    find_best_threshold,
    leave_out_groups,
    sort_into_bins,
)


def sample(labels: Sequence[int], scores: Sequence[float], threshold: float = 0.5) -> Sample:
    values = np.array(scores, dtype=float)
    return Sample(np.array(labels, bool), values, values >= threshold, np.zeros(len(values), dtype=np.int64))


scored = st.lists(st.tuples(st.booleans(), st.sampled_from([0.0, 0.2, 0.5, 0.5001, 1.0])), max_size=30)


@settings(deadline=None)
@given(scored)
def test_areas_and_balanced_accuracy_agree_with_scikit_learn(pairs: list[tuple[bool, float]]) -> None:
    labels, scores = [label for label, _ in pairs], [score for _, score in pairs]
    found = sample(labels, scores)
    if len(set(labels)) == 2:
        assert compute_average_precision(found) == pytest.approx(average_precision_score(labels, scores))
        assert compute_auroc(found) == pytest.approx(roc_auc_score(labels, scores))
        expected = balanced_accuracy_score(labels, found.flags)
        assert compute_flag_scores(found)["balanced_accuracy"] == pytest.approx(expected)


@settings(deadline=None)
@given(scored.filter(lambda pairs: len({label for label, _ in pairs}) == 2))
def test_gold_as_score_is_perfect_whatever_is_measured(pairs: list[tuple[bool, float]]) -> None:
    labels = [label for label, _ in pairs]
    gold = sample(labels, labels)
    assert (compute_auroc(gold), compute_average_precision(gold)) == (1.0, 1.0)
    assert (compute_calibration_error(gold), compute_brier(gold)) == (0.0, 0.0)
    assert set(compute_flag_scores(gold).values()) == {1.0}
    assert find_best_threshold(gold) == 1.0


def test_ties_count_half() -> None:
    assert compute_auroc(sample([1, 0], [0.5, 0.5])) == 0.5


def test_one_class_alone_has_no_auroc_and_no_balanced_accuracy() -> None:
    found = sample([1, 1], [0.1, 0.9])
    assert (compute_auroc(found), compute_flag_scores(found)["balanced_accuracy"]) == (None, None)


def test_nothing_flagged_has_no_precision_and_no_positives_have_no_recall() -> None:
    assert compute_flag_scores(sample([1, 0], [0.1, 0.1]))["precision"] is None
    assert compute_flag_scores(sample([0, 0], [0.9, 0.1]))["recall"] is None


def test_without_positives_there_is_no_f1() -> None:
    assert compute_flag_scores(sample([0, 0], [0.9, 0.1]))["f1"] is None


def test_scores_that_are_meant_otherwise_are_no_probabilities() -> None:
    severities = dataclasses.replace(sample([0, 1], [1.0, 1.0]), probabilities=False)
    assert (compute_brier(severities), compute_calibration_error(severities), sort_into_bins(severities)) == (
        None,
        None,
        (),
    )


def test_an_empty_sample_has_no_numbers() -> None:
    empty = sample([], [])
    assert set(compute_flag_scores(empty).values()) == {None}
    assert [
        compute_auroc(empty),
        compute_average_precision(empty),
        compute_brier(empty),
        find_best_threshold(empty),
    ] == [None] * 4


@pytest.mark.parametrize("label", [0, 1])
def test_one_class_alone_cannot_be_ranked(label: int) -> None:
    found = sample([label] * 2, [0.2, 0.9])
    assert (compute_auroc(found), compute_average_precision(found)) == (None, None)


def test_calibration_by_hand() -> None:
    found = sample([0, 1, 1, 1], [0.0, 0.25, 0.75, 1.0])
    assert sort_into_bins(found) == (Bin(1, 0.0, 0.0), Bin(1, 0.25, 1.0), Bin(1, 0.75, 1.0), Bin(1, 1.0, 1.0))
    assert compute_calibration_error(found) == 0.25
    assert compute_brier(found) == 0.15625


def test_a_bin_weighs_as_many_items_as_it_has_in_the_calibration_error() -> None:
    # Three items that are off by 1/16, and one that is off by 1/4.
    assert compute_calibration_error(sample([0, 0, 0, 1], [0.0625, 0.0625, 0.0625, 0.75])) == 0.109375


def test_scores_beyond_one_are_no_probabilities() -> None:
    found = sample([0, 1], [1.0, 4.0])
    assert (compute_brier(found), compute_calibration_error(found), sort_into_bins(found)) == (None, None, ())


def test_the_best_threshold_has_the_highest_f1() -> None:
    assert find_best_threshold(sample([1, 0, 1], [0.9, 0.5, 0.1])) == 0.1
    assert find_best_threshold(sample([1, 0], [0.9, 0.5])) == 0.9
    assert find_best_threshold(sample([0, 0], [0.9, 0.5])) is None


def test_of_equally_good_thresholds_the_highest_is_the_best() -> None:
    # From 0.9 on F1 is 2 / (1 + 2), from 0.6 on 4 / (4 + 2).
    assert find_best_threshold(sample([1, 0, 0, 1], [0.9, 0.8, 0.7, 0.6])) == 0.9


def random_sample(n: int, clusters: int) -> Sample:
    generator = np.random.default_rng(3)
    labels = generator.random(n) < 0.3
    scores = np.round(generator.random(n) + 0.3 * labels, 2)
    return Sample(labels, scores, scores >= 0.5, generator.integers(0, clusters, n))


def bounds(sample: Sample) -> dict[str, tuple[float, float] | None]:
    numbers = {
        "auroc": compute_auroc(sample),
        "auprc": compute_average_precision(sample),
        **compute_flag_scores(sample),
    }
    return compute_detection_intervals(sample, numbers, leave_out_groups(sample))


@pytest.mark.parametrize("group", [0, 6])
def test_a_number_without_a_group_is_that_of_the_others(group: int) -> None:
    sample = random_sample(60, 7)
    left_out, others = leave_out_groups(sample), sample.only(sample.clusters != group)
    assert left_out["auroc"][group] == pytest.approx(compute_auroc(others))
    assert left_out["auprc"][group] == pytest.approx(compute_average_precision(others))
    assert left_out["f1"][group] == pytest.approx(compute_flag_scores(others)["f1"])
    assert left_out["balanced_accuracy"][group] == pytest.approx(
        compute_flag_scores(others)["balanced_accuracy"]
    )


def test_many_groups_are_left_out_in_two_hundred_blocks() -> None:
    sample = random_sample(5_000, 500)
    left_out = leave_out_groups(sample)["auroc"]
    assert len(left_out) == 200
    others = sample.only(sample.clusters % 200 != 7)
    assert left_out[7] == pytest.approx(compute_auroc(others))


def test_groups_without_items_are_none() -> None:
    sample = random_sample(60, 7)
    spread = dataclasses.replace(sample, clusters=3 * sample.clusters)
    assert leave_out_groups(spread)["f1"].tolist() == leave_out_groups(sample)["f1"].tolist()


@pytest.mark.parametrize(("groups", "there"), [(5, False), (6, True)])
def test_six_groups_are_the_fewest_with_an_interval(groups: int, there: bool) -> None:
    labels = np.tile([True, False], groups)
    flags = np.concatenate([~labels[:2], labels[2:]])
    sample = Sample(labels, flags.astype(float), flags, np.repeat(np.arange(groups), 2))
    assert {name: ci95 is not None for name, ci95 in bounds(sample).items()} == dict.fromkeys(
        ("auroc", "auprc", "f1", "balanced_accuracy"), there
    )
    spans = compute_f1_interval([(place and 1, 2, 2) for place in range(groups)], range(groups))
    assert (spans is not None) == there


@pytest.mark.parametrize("rare", [True, False])
@pytest.mark.parametrize(("groups", "there"), [(5, False), (6, True)])
def test_classes_are_compared_where_six_groups_have_each(groups: int, there: bool, rare: bool) -> None:
    labels = np.full(40, not rare)
    labels[:groups] = rare
    found = bounds(Sample(labels, np.arange(40.0) * 7 % 40, np.arange(40) > 3, np.arange(40)))
    assert (found["auroc"] is not None) == there
    assert (found["balanced_accuracy"] is not None) == there
    assert found["auprc"] is not None


def test_perfect_numbers_are_bounded_by_the_groups_of_the_rarer_class() -> None:
    # Six groups of twenty have a positive: 0.025^(1/6).
    labels = np.arange(20) < 6
    found = bounds(Sample(labels, labels.astype(float), labels, np.arange(20)))
    assert list(found.values()) == [(pytest.approx(0.540742, rel=1e-6), 1.0)] * 4


@pytest.mark.parametrize(("items", "clusters"), [(20, 1), (0, 3)])
def test_one_group_and_none_have_no_interval(items: int, clusters: int) -> None:
    assert set(bounds(random_sample(items, clusters)).values()) == {None}


def test_f1_of_spans_by_hand() -> None:
    # 6 of 12: 1/2. Without one with a hit 0.4, without one of the others 0.6: error √(5/6 · 6 · 0.1²).
    low, high = compute_f1_interval([(1, 1, 1), (0, 1, 1)] * 3, range(6)) or (0, 0)
    step = 2.570582 * 0.05**0.5 / 0.25
    assert (low, high) == pytest.approx((1 / (1 + np.exp(step)), 1 / (1 + np.exp(-step))), rel=1e-5)


def test_f1_of_spans_that_is_the_same_without_each_group_has_no_interval() -> None:
    assert compute_f1_interval([(n, 2 * n, 2 * n) for n in range(1, 7)], range(6)) is None


def test_f1_of_spans_of_one_group_alone_has_no_interval() -> None:
    assert compute_f1_interval([(1, 2, 2), *[(0, 3, 0)] * 5], range(6)) is None
    assert compute_f1_interval([(1, 2, 2), (2, 4, 4)], [1, 1]) is None


def test_samples_left_out_in_parts_are_those_left_out_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    sample = random_sample(60, 7)
    whole = leave_out_groups(sample)["auroc"]
    monkeypatch.setattr(detection, "_CELLS", 30)
    assert np.array_equal(leave_out_groups(sample)["auroc"], whole)
