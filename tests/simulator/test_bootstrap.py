"""Cluster bootstrap of rank statistics: each resample agrees with the plain statistic of what it drew."""

from __future__ import annotations

import numpy as np
import pytest

from simulator.measure.bootstrap import RESAMPLES, interval, ratio_replicates, replicates
from simulator.measure.detection import Sample, auroc, average_precision, decisions
from simulator.measure.statistics import cluster_weights


def random_sample(n: int, clusters: int) -> Sample:
    generator = np.random.default_rng(3)
    labels = generator.random(n) < 0.3
    scores = np.round(generator.random(n) + 0.3 * labels, 2)
    return Sample(labels, scores, scores >= 0.5, generator.integers(0, clusters, n))


@pytest.mark.parametrize("resample", [0, 1, RESAMPLES - 1])
def test_a_resample_is_the_statistic_of_the_groups_drawn(resample: int) -> None:
    sample = random_sample(60, 7)
    drawn = replicates(sample, 7)
    times = cluster_weights(7, RESAMPLES)[resample][sample.clusters]
    again = sample.only(np.repeat(np.arange(60), times))  # type: ignore[arg-type]
    assert drawn["auroc"][resample] == pytest.approx(auroc(again))
    assert drawn["auprc"][resample] == pytest.approx(average_precision(again))
    assert drawn["f1"][resample] == pytest.approx(decisions(again)["f1"])
    assert drawn["balanced_accuracy"][resample] == pytest.approx(decisions(again)["balanced_accuracy"])


def test_groups_are_drawn_and_not_items() -> None:
    # Two groups, each of one class: a resample has both classes with probability 1/2, and then AUROC 1.
    labels = np.array([True, True, False, False])
    sample = Sample(labels, labels.astype(float), labels, np.array([0, 0, 1, 1]))
    values = replicates(sample, 2)["auroc"]
    assert np.isnan(values).mean() == pytest.approx(0.5, abs=0.05)
    assert interval(values) == [1.0, 1.0]


def test_one_group_has_no_interval() -> None:
    sample = random_sample(20, 1)
    assert interval(replicates(sample, 1)["auroc"]) is None


def test_nothing_scored_has_no_interval() -> None:
    assert interval(replicates(random_sample(0, 3), 3)["auroc"]) is None


def test_equal_ratios_have_an_interval_of_no_width() -> None:
    assert interval(ratio_replicates([(1, 2), (2, 4), (3, 6)], [0, 1, 2], 3)) == [0.5, 0.5]
