"""Cluster bootstrap of rank statistics: each resample agrees with the plain statistic of what it drew."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest

from hallulab.simulator.statistics import detection as bootstrap
from hallulab.simulator.statistics.detection import (
    RESAMPLES,
    Sample,
    compute_auroc,
    compute_average_precision,
    compute_f1_replicates,
    compute_flag_scores,
    compute_replicates,
)
from hallulab.simulator.statistics.intervals import compute_percentile_interval, draw_cluster_weights


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
