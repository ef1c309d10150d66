"""The probability that each chatbot is best."""

from __future__ import annotations

import numpy as np
import pytest

from hallulab.simulator.metrics.corrections import compute_best_probabilities, draw_weighed_totals


def test_the_lowest_of_each_replicate_is_counted_and_ties_are_shared() -> None:
    replicates = np.array([[1.0, 2.0, 3.0], [2.0, 1.0, 1.0], [0.0, 0.0, 5.0], [0.0, 1.0, 1.0]])
    assert compute_best_probabilities(replicates) == [0.625, 0.25, 0.125]


@pytest.mark.parametrize(("undefined", "told"), [(1, True), (3, False)])
def test_undefined_replicates_are_left_out_unless_there_are_many(undefined: int, told: bool) -> None:
    replicates = np.array([[0.0, 1.0]] * 40)
    replicates[:undefined, 1] = np.nan
    assert compute_best_probabilities(replicates) == ([1.0, 0.0] if told else None)


def test_replicates_that_are_all_the_same_name_the_best() -> None:
    assert compute_best_probabilities(np.array([[0.0, 1.0]] * 40)) == [1.0, 0.0]


def test_chatbots_with_the_same_personas_are_weighed_alike() -> None:
    """The second chatbot is a little worse with every persona; personas differ much more."""
    sums = np.array([[[1.0, place], [1.0, place + 0.1]] for place in range(8)])
    totals = draw_weighed_totals(sums)
    assert totals.shape == (10_000, 2, 2)
    assert compute_best_probabilities(totals[..., 1] / totals[..., 0]) == [1.0, 0.0]
