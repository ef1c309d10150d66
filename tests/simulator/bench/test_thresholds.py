"""Three ways to choose a threshold, on scores where each gives another F1."""

from __future__ import annotations

import numpy as np
import pytest

from hallulab.simulator.bench.rows import Decided, decide_by_protocols, draw_dev_half
from hallulab.simulator.statistics.detection import Sample


def test_half_of_the_groups_is_development_data() -> None:
    assert [int(draw_dev_half(groups).sum()) for groups in (0, 1, 2, 5, 10)] == [0, 0, 1, 2, 5]


def test_each_half_is_decided_by_the_others_threshold() -> None:
    dev = draw_dev_half(2)
    first, second = int(np.flatnonzero(dev)[0]), int(np.flatnonzero(~dev)[0])
    sample = Sample(
        labels=np.array([True, False, True, False]),
        scores=np.array([0.9, 0.6, 0.5, 0.2]),
        flags=np.array([True, True, False, False]),
        clusters=np.array([first, first, second, second]),
    )
    found = decide_by_protocols(sample, 2, 0.55)
    assert (found.default.threshold, found.default.f1) == (0.55, 0.5)
    # 0.9, best on the first group, finds nothing in the second; 0.5 flags all of the first.
    assert found.tuned.threshold == (0.9, 0.5)
    assert (found.tuned.precision, found.tuned.recall) == (0.5, 0.5)
    assert (found.oracle.threshold, found.oracle.f1) == (0.5, pytest.approx(0.8))


def test_a_half_without_positives_tunes_nothing() -> None:
    dev = draw_dev_half(2)
    sample = Sample(
        labels=np.array([True, False]),
        scores=np.array([0.9, 0.6]),
        flags=np.array([True, False]),
        clusters=np.array([int(np.flatnonzero(dev)[0]), int(np.flatnonzero(~dev)[0])]),
    )
    assert decide_by_protocols(sample, 2, None).tuned == Decided()
