"""Numbers corrected by turns that were drawn with different probabilities."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations, product

import numpy as np
import pytest

from hallulab.scenarios.datasets.annotations import Draw
from hallulab.simulator.metrics.prediction_powered import (
    JudgedTurn,
    TurnSums,
    estimate_means,
    sum_judged_turns,
)
from hallulab.simulator.statistics.drawn_turns import (
    Draws,
    compute_drawn_lambda,
    compute_drawn_thetas,
    estimate_drawn_error,
)
from hallulab.simulator.statistics.intervals import Floats

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
