"""How many turns of a run are drawn of which."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest

from hallulab.simulator.annotate.plan import DrawPlan, ScoredTurn, draw_cells, plan_draw


def turns(*spans: int, chatbot: str = "a", annotated: int | None = None) -> list[ScoredTurn]:
    return [
        ScoredTurn(chatbot, place, chatbot, said, float(said), annotated) for place, said in enumerate(spans)
    ]


def drawn(plan: DrawPlan) -> list[tuple[int, int]]:
    """Size of each cell, and how many of it are drawn."""
    return [(len(cell.places), cell.drawn) for cell in plan.cells]


def test_chatbots_of_which_the_detector_says_the_same_share_a_draw() -> None:
    run = turns(*[1] * 12) + turns(*[1] * 12, chatbot="b")
    assert sum(cell.drawn for cell in plan_draw(run, 8).cells if cell.places[0] < 12) == 4


def test_where_the_detector_says_more_turns_are_drawn_more_densely() -> None:
    plan = plan_draw(turns(*[0] * 90, *[4] * 10), 30)
    by_class = sorted((cell.stratum, cell.propensity) for cell in plan.cells)
    assert by_class[0][1] < by_class[-1][1]
    assert sum(cell.drawn for cell in plan.cells) == 30


@pytest.mark.parametrize("number", [1, 2, 5, 20, 39, 40, 99])
def test_no_turn_has_a_propensity_of_zero(number: int) -> None:
    run = [one for bot in "abcd" for one in turns(*range(10), chatbot=bot)]
    plan = plan_draw(run, number)
    assert sorted(place for cell in plan.cells for place in cell.places) == [*range(40)]
    assert all(0 < cell.propensity <= 1 for cell in plan.cells)
    assert sum(cell.drawn for cell in plan.cells) == min(number, 40)


def test_annotated_turns_are_not_drawn_again() -> None:
    run = turns(1, 1, 1, 1, annotated=1) + turns(*[1] * 6, chatbot="b")
    assert {place for cell in plan_draw(run, 3).cells for place in cell.places} == {4, 5, 6, 7, 8, 9}


def test_labels_tell_where_the_detector_errs() -> None:
    """It is right where it says 4, and wrong where it says 0: then the zeros are drawn more densely."""
    left = turns(*[0] * 50, *[4] * 50)
    labels = [
        ScoredTurn("x", place, "a", said, float(said), true)
        for place, (said, true) in enumerate([(4, 4)] * 20 + [(0, 0), (0, 6)] * 10)
    ]
    plan = plan_draw(left + labels, 40)
    propensity = {place: cell.propensity for cell in plan.cells for place in cell.places}
    assert propensity[0] > 1.5 * propensity[99]


def test_each_turn_of_a_cell_is_as_likely_and_the_seed_decides() -> None:
    plan = plan_draw(turns(*[1] * 6), 2)
    counts = Counter(at for seed in range(600) for _, at in draw_cells(plan, np.random.default_rng(seed)))
    assert sum(counts.values()) == 1200
    assert all(160 < counts[at] < 240 for at in range(6))
    one, other = (draw_cells(plan, np.random.default_rng(7)) for _ in range(2))
    assert one == other


def test_the_expected_width_is_that_of_a_stratified_draw() -> None:
    """One chatbot, the guess s² = 0.25 · 2 of turns with one hallucination; t of 5 degrees: 2.571."""
    plan = plan_draw(turns(*[1] * 12), 6)
    assert drawn(plan) == [(12, 6)]
    assert plan.width == pytest.approx(2 * 2.5706 * (0.5 * (1 / 6 - 1 / 12)) ** 0.5, abs=1e-3)
    assert plan.random_width == pytest.approx(plan.width)
