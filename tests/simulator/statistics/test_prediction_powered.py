"""Prediction-powered inference: values of the authors' package, closed forms, clusters."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations, product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hallulab.scenarios.datasets.annotations import Draw
from hallulab.simulator.metrics.judged_turns import JudgedTurn, TurnSums, sum_judged_turns
from hallulab.simulator.statistics.intervals import Floats
from hallulab.simulator.statistics.prediction_powered import (
    Draws,
    compute_drawn_lambda,
    compute_drawn_thetas,
    compute_turn_sums,
    estimate_drawn_error,
    estimate_means,
)

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


DENSE, SPARSE = Draw(1, 1, 1.0), Draw(1, 0, 0.5)
Turn = tuple[int, int | None, Draw | None]
"""What the detector says, what annotators say, how the turn was drawn."""


def judged(turns: Sequence[Turn], chatbot: str = "a") -> list[JudgedTurn]:
    """Each turn is of another persona."""
    return [
        JudgedTurn(chatbot, ("s", f"p{place:02}"), 0, said > 0, said, 1, 0, true, draw)
        for place, (said, true, draw) in enumerate(turns)
    ]


def looked(*turns: JudgedTurn) -> tuple[Floats, Draws]:
    panel = sum_judged_turns(turns).panel(sorted({turn.chatbot for turn in turns}), None)
    return panel.looked_spans, panel.draws


def theta(*turns: JudgedTurn) -> float:
    sums, draws = looked(*turns)
    [value] = compute_drawn_thetas(sums.sum(axis=0), draws)
    return float(value)


def test_a_turn_counts_as_many_as_its_propensity_says() -> None:
    """The detector says nothing: (1 · 2 + 3 · 1) / 3, since one of the two others was drawn."""
    assert theta(*judged([(0, 1, SPARSE), (0, None, None), (0, 3, DENSE)])) == pytest.approx(5 / 3)


def test_on_average_over_all_draws_the_number_is_that_of_all_labels() -> None:
    true = [0, 4, 1, 0, 7, 2]
    found = []
    for low, high in product(combinations(range(4), 2), combinations(range(4, 6), 1)):
        how = {**dict.fromkeys(low, SPARSE), **dict.fromkeys(high, Draw(1, 1, 0.5))}
        found.append(theta(*judged([(0, true[at] if at in how else None, how.get(at)) for at in range(6)])))
    assert np.mean(found) == pytest.approx(np.mean(true))


def test_where_all_turns_are_labelled_the_number_is_theirs() -> None:
    assert theta(*judged([(2, 1, DENSE), (0, 0, DENSE), (1, 4, DENSE)])) == pytest.approx(5 / 3)


def test_what_was_annotated_before_a_draw_counts_once_and_the_draw_for_the_rest() -> None:
    """Before: 9, which stands for all; the draw: (9 + 3 · 1) / 4. Worth: 1 / (share² · (1/n - 1/N))."""
    turns = judged([(0, 9, None), (0, 1, Draw(1, 0, 1 / 3)), (0, None, None), (0, None, None)])
    of_before, of_draw = 1 / (1 - 1 / 4), 1 / ((3 / 4) ** 2 * (1 - 1 / 3))
    expected = (of_before * 9 + of_draw * 3) / (of_before + of_draw)
    assert theta(*turns) == pytest.approx(expected)


def test_of_equally_likely_turns_the_number_is_nearly_that_without_propensities() -> None:
    said, true = [0, 1, 2, 0, 3, 1, 2, 0] * 6, [0, 1, 3, 1, 3, 0, 2, 0] * 6
    even = Draw(1, 0, 0.5)
    drawn = judged(
        [
            (f, *((y, even) if at < 24 else (None, None)))
            for at, (f, y) in enumerate(zip(said, true, strict=True))
        ]
    )
    [known, _] = estimate_means(looked(*drawn)[0][..., :7])
    [found, _] = estimate_means(*looked(*drawn))
    assert found.value == pytest.approx(known.value, abs=0.02)
    assert found.error == pytest.approx(known.error, rel=0.1)
    assert (found.annotated, found.clusters) == (24, 24)


def test_lambda_starts_from_one_and_follows_many_labels() -> None:
    few = looked(*judged([(0, 1, SPARSE), (2, 1, SPARSE), *((at % 3, None, None) for at in range(6))]))
    many = looked(*judged([(2 * (at % 2), 1, SPARSE) for at in range(60)]))
    weights = [float(compute_drawn_lambda(sums.sum(axis=0), draws)) for sums, draws in (few, many)]
    assert 0.5 < weights[0] < 1
    assert weights[1] < 0.1


def test_the_error_is_that_of_a_stratified_draw() -> None:
    """Two cells of 8, four labelled each: Σ (N/T)² s² (1/n - 1/N), s² of 0, 0, 1, 1 and 0, 0, 3, 3."""
    low, high = Draw(1, 0, 0.5), Draw(1, 1, 0.5)
    cells = [(low, (0, 0, 1, 1)), (high, (0, 0, 3, 3))]
    turns = [(0, y, draw) for draw, true in cells for y in true] + [(0, None, None)] * 8
    sums, draws = looked(*judged(turns))
    found = estimate_drawn_error(sums.sum(axis=0), draws, None)
    assert found is not None
    parts = [0.25 * variance * (1 / 4 - 1 / 8) for variance in (1 / 3, 3.0)]
    assert found.error == pytest.approx(sum(parts) ** 0.5)
    assert found.freedom == pytest.approx(sum(parts) ** 2 / sum(part**2 / 3 for part in parts))


@pytest.mark.parametrize(
    "turns",
    [
        [(0, 1, DENSE), (0, 0, DENSE), (0, 2, DENSE), (0, 1, DENSE)],
        [(0, 1, SPARSE), (0, 0, SPARSE), (0, None, None), (0, None, None)],
        [*((0, at % 2, SPARSE) for at in range(6)), (0, 1, None), *((0, None, None) for _ in range(6))],
    ],
    ids=["all labelled", "too few", "some not drawn"],
)
def test_there_is_no_error_by_the_draw(turns: list[Turn]) -> None:
    sums, draws = looked(*judged(turns))
    assert estimate_drawn_error(sums.sum(axis=0), draws, None) is None


def test_sums_of_parts_are_those_of_the_whole_to_the_digit() -> None:
    third = Draw(2, 0, 1 / 3)
    turns = judged([(at % 3, at % 4, third if at % 2 else SPARSE) for at in range(12)])
    whole = sum_judged_turns(turns).panel(["a"], None)
    merged = TurnSums()
    for part in (turns[7:], turns[:7]):
        merged.merge(sum_judged_turns(part))
    parts = merged.panel(["a"], None)
    assert parts.draws == whole.draws == (SPARSE, third)
    assert np.array_equal(parts.looked_spans, whole.looked_spans)
    assert np.array_equal(parts.looked_flags, whole.looked_flags)


def test_chatbots_are_told_apart() -> None:
    turns = judged([(0, 1, SPARSE), (0, None, None)]) + judged([(0, 2, DENSE), (0, 4, DENSE)], "b")
    sums, draws = looked(*turns)
    assert compute_drawn_thetas(sums.sum(axis=0), draws).tolist() == pytest.approx([1.0, 3.0])
