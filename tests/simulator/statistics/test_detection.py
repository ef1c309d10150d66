"""Numbers of a sample: exact values by hand, agreement with scikit-learn, None where nothing is defined."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.metrics import average_precision_score, balanced_accuracy_score, roc_auc_score

from hallulab.simulator.statistics import detection as bootstrap
from hallulab.simulator.statistics.detection import (
    RESAMPLES,
    Bin,
    Sample,
    compute_auroc,
    compute_average_precision,
    compute_brier,
    compute_calibration_error,
    compute_f1_replicates,
    compute_flag_scores,
    compute_replicates,
    find_best_threshold,
    sort_into_bins,
)
from hallulab.simulator.statistics.intervals import compute_percentile_interval, draw_cluster_weights


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


@pytest.mark.parametrize("resample", [0, 1, RESAMPLES - 1])
def test_a_resample_is_the_statistic_of_the_groups_drawn(resample: int) -> None:
    sample = random_sample(60, 7)
    drawn = compute_replicates(sample, 7)
    times = draw_cluster_weights(7, RESAMPLES)[resample][sample.clusters]
    again = sample.only(np.repeat(np.arange(60), times))  # type: ignore[arg-type]
    assert drawn["auroc"][resample] == pytest.approx(compute_auroc(again))
    assert drawn["auprc"][resample] == pytest.approx(compute_average_precision(again))
    assert drawn["f1"][resample] == pytest.approx(compute_flag_scores(again)["f1"])
    assert drawn["balanced_accuracy"][resample] == pytest.approx(
        compute_flag_scores(again)["balanced_accuracy"]
    )


def test_groups_are_drawn_and_not_items() -> None:
    # Six groups of two, one of them positive: a resample lacks it with probability (5/6)^6 = 0.335.
    labels = np.repeat([True, False, False, False, False, False], 2)
    sample = Sample(labels, labels.astype(float), labels, np.repeat(np.arange(6), 2))
    assert np.isnan(compute_replicates(sample, 6)["auprc"]).mean() == pytest.approx(0.335, abs=0.05)


@pytest.mark.parametrize(("groups", "there"), [(5, False), (6, True)])
def test_six_groups_are_the_fewest_with_an_interval(groups: int, there: bool) -> None:
    labels = np.tile([True, False], groups)
    flags = np.concatenate([~labels[:2], labels[2:]])
    sample = Sample(labels, flags.astype(float), flags, np.repeat(np.arange(groups), 2))
    drawn = compute_replicates(sample, groups)
    assert {
        name: compute_percentile_interval(values) is not None for name, values in drawn.items()
    } == dict.fromkeys(("auroc", "auprc", "f1", "balanced_accuracy"), there)
    spans = compute_f1_replicates([(place and 1, 2, 2) for place in range(groups)], range(groups), groups)
    assert (compute_percentile_interval(spans) is not None) == there


def test_one_group_with_items_among_several_has_no_interval() -> None:
    sample = dataclasses.replace(random_sample(20, 1), clusters=np.full(20, 3))
    assert {compute_percentile_interval(values) for values in compute_replicates(sample, 5).values()} == {
        None
    }


@pytest.mark.parametrize("rare", [True, False])
@pytest.mark.parametrize(("groups", "there"), [(5, False), (6, True)])
def test_classes_are_compared_where_six_groups_have_each(groups: int, there: bool, rare: bool) -> None:
    labels = np.full(40, not rare)
    labels[:groups] = rare
    sample = Sample(labels, np.arange(40.0) * 7 % 40, np.arange(40) > 3, np.arange(40))
    drawn = compute_replicates(sample, 40)
    assert (compute_percentile_interval(drawn["auroc"]) is not None) == there
    assert (compute_percentile_interval(drawn["balanced_accuracy"]) is not None) == there
    assert compute_percentile_interval(drawn["auprc"]) is not None


def test_more_than_a_twentieth_undefined_is_no_interval() -> None:
    values = np.arange(1000.0)
    values[:50] = np.nan
    assert compute_percentile_interval(values) == pytest.approx([73.725, 975.275])
    values[50] = np.nan
    assert compute_percentile_interval(values) is None


def test_f1_is_undefined_in_a_resample_without_positives() -> None:
    labels = np.arange(6) == 0
    sample = Sample(labels, np.ones(6), np.ones(6, bool), np.arange(6))
    drawn = draw_cluster_weights(6, RESAMPLES)
    assert (np.isnan(compute_replicates(sample, 6)["f1"]) == (drawn[:, 0] == 0)).all()


def test_one_group_has_no_interval() -> None:
    sample = random_sample(20, 1)
    assert compute_percentile_interval(compute_replicates(sample, 1)["auroc"]) is None


def test_nothing_scored_has_no_interval() -> None:
    assert compute_percentile_interval(compute_replicates(random_sample(0, 3), 3)["auroc"]) is None


def test_an_interval_of_no_width_is_none() -> None:
    counts = [(n, 2 * n, 2 * n) for n in range(1, 7)]
    assert compute_percentile_interval(compute_f1_replicates(counts, range(6), 6)) is None


def test_spans_of_one_group_have_no_interval() -> None:
    assert compute_percentile_interval(compute_f1_replicates([(1, 2, 2), (2, 4, 4)], [1, 1], 3)) is None


def test_spans_of_the_only_group_have_no_f1_in_any_resample() -> None:
    assert np.isnan(compute_f1_replicates([(1, 2, 2), (2, 4, 4)], [0, 0], 1)).all()


def test_span_f1_is_undefined_in_a_resample_without_gold() -> None:
    drawn = draw_cluster_weights(6, RESAMPLES)
    counts = [(1, 2, 2), *[(0, 3, 0)] * 5]
    assert (np.isnan(compute_f1_replicates(counts, range(6), 6)) == (drawn[:, 0] == 0)).all()


def test_resamples_summed_in_blocks_are_those_summed_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    labels = np.array([True, False, True, False, True, False])
    sample = Sample(labels, np.array([0.9, 0.8, 0.4, 0.3, 0.7, 0.1]), np.ones(6, bool), np.arange(6))
    whole = compute_replicates(sample, 6)["auroc"]
    monkeypatch.setattr(bootstrap, "_CELLS", 30)
    assert np.array_equal(compute_replicates(sample, 6)["auroc"], whole, equal_nan=True)
