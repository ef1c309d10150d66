from __future__ import annotations

import numpy as np
import pytest

from hallulab.simulator.statistics.bootstrap import compute_percentile_interval, draw_cluster_weights


def test_more_than_a_twentieth_undefined_is_no_interval() -> None:
    values = np.arange(1000.0)
    values[:50] = np.nan
    assert compute_percentile_interval(values) == pytest.approx([73.725, 975.275])
    values[50] = np.nan
    assert compute_percentile_interval(values) is None


def test_an_interval_of_no_width_is_none() -> None:
    assert compute_percentile_interval(np.full(100, 0.3)) is None


def test_a_resample_takes_as_many_clusters_as_there_are() -> None:
    drawn = draw_cluster_weights(7, 500)
    assert (drawn.shape, set(drawn.sum(axis=1))) == ((500, 7), {7})
    assert drawn.mean() == 1.0
    assert np.array_equal(drawn, draw_cluster_weights(7, 500))
