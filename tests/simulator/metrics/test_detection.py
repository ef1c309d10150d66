"""Numbers of a sample: exact values by hand, agreement with scikit-learn, None where nothing is defined."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.metrics import average_precision_score, balanced_accuracy_score, roc_auc_score

from hallulab.simulator.statistics.detection import (
    Bin,
    Sample,
    compute_auroc,
    compute_average_precision,
    compute_brier,
    compute_calibration_error,
    compute_flag_scores,
    find_best_threshold,
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
