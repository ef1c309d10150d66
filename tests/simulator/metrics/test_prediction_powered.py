"""Prediction-powered inference: values of the authors' package, closed forms, clusters."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hallulab.simulator.metrics.prediction_powered import compute_turn_sums, estimate_means
from hallulab.simulator.statistics.intervals import Floats

SAID = (0, 1, 1, 0, 2, 2)
TRUE = (0, 1, 2, 0, 3, 1)
ALONE = (1, 0, 2, 1, 0, 3, 1, 0, 2, 2)
"""What the detector says of turns that nobody looked at."""


def chatbot(said: list[tuple[float, float | None]]) -> Floats:
    """A chatbot whose turns are each a cluster of their own."""
    return np.array([compute_turn_sums(f, y) for f, y in said], dtype=np.float64)[:, None]


def test_number_and_weight_are_those_of_ppi_python() -> None:
    # ppi-python 0.2.3: ppi_mean_pointestimate(TRUE, SAID, ALONE) = 1.2575757575757576, with λ' = 5/11.
    found, together = estimate_means(chatbot([*zip(SAID, TRUE, strict=True), *((f, None) for f in ALONE)]))
    assert found.value == pytest.approx(1.2575757575757576)
    assert found.weight == pytest.approx(5 / 11 * (1 + 6 / 10))
    assert (found.annotated, found.clusters) == (6, 6)
    assert together == found


def test_of_independent_turns_the_error_is_nearly_that_of_the_paper() -> None:
    """Section 6: var(y - λ f) / n + var(λ f) / N, of many turns."""
    random = np.random.default_rng(0)
    said = random.poisson(1.0, 4000).astype(float)
    true = said + random.poisson(0.5, 4000)
    turns = [(f, y if place < 1000 else None) for place, (f, y) in enumerate(zip(said, true, strict=True))]
    [found, _] = estimate_means(chatbot(turns))
    share = found.weight * 3000 / 4000
    error = np.var(true[:1000] - share * said[:1000]) / 1000 + share**2 * np.var(said[1000:]) / 3000
    assert found.error == pytest.approx(error**0.5, rel=0.02)


def test_a_detector_that_says_nothing_leaves_the_mean_of_the_annotated() -> None:
    [found, _] = estimate_means(chatbot([(1, 3), (1, 0), (1, 0), (1, None)]))
    assert (found.value, found.weight) == (1.0, 0.0)


@given(st.lists(st.tuples(st.integers(0, 4), st.integers(0, 4)), min_size=2, max_size=9))
def test_where_all_turns_are_annotated_the_detector_does_not_matter(turns: list[tuple[int, int]]) -> None:
    [found, _] = estimate_means(chatbot([(f, y) for f, y in turns]))
    assert found.value == pytest.approx(sum(y for _, y in turns) / len(turns))


def test_turns_of_a_cluster_count_as_one_observation() -> None:
    turns = [*zip(SAID, TRUE, strict=True), *((f, None) for f in ALONE)]
    [alone, _] = estimate_means(chatbot(turns))
    [fourfold, _] = estimate_means(4 * chatbot(turns))
    assert fourfold.value == pytest.approx(alone.value, rel=0.1)
    assert fourfold.error == pytest.approx(alone.error, rel=0.1)
    assert fourfold.annotated == 24


def test_chatbots_share_a_weight_and_all_turns_weigh_them_by_their_turns() -> None:
    first = chatbot([(1, 1), (0, 0), (2, 2), (0, None)])
    second = chatbot([(1, 1), (0, 1), (2, 1), (0, None)])
    second[3] *= 5
    one, two, together = estimate_means(np.concatenate([first, second], axis=1))
    assert one.weight == two.weight
    assert 0 < one.weight < 1
    assert together.value == pytest.approx((4 * one.value + 8 * two.value) / 12)


def test_a_cluster_that_alone_is_annotated_gives_no_error() -> None:
    [found, _] = estimate_means(chatbot([(1, 1), (0, None), (2, None)]))
    assert (found.value, found.error, found.clusters) == (1.0, None, 1)
