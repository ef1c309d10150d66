"""Chosen labels beside random ones: that the interval is narrower, and holds what all labels give."""

from __future__ import annotations

import numpy as np
import pytest

from benchmarks.label_next import (
    LABELS,
    Sample,
    choose,
    choose_twice,
    correct,
    draw_evenly,
    make_up,
    measure,
    read_sample,
    summarize,
)


def summarized(runs: list[Sample], chosen: bool) -> tuple[float, float]:
    """Mean width and share of covering intervals, of 60 labels of each run."""
    design = choose if chosen else draw_evenly
    found = [correct(run, design(run, 60, np.random.default_rng(at)))[0] for at, run in enumerate(runs)]
    outcome = summarize(found)
    return outcome.width, outcome.covered


def test_of_rare_hallucinations_chosen_labels_give_a_narrower_interval() -> None:
    runs = [make_up((0.9, 0.99), 0.03, draw) for draw in range(20)]
    (evenly, _), (chosen, covered) = (summarized(runs, chosen) for chosen in (False, True))
    assert chosen < 0.9 * evenly
    assert covered >= 0.85


def test_two_draws_label_each_turn_once() -> None:
    run = make_up((0.9, 0.99), 0.03, 0)
    drawn = choose_twice(run, 40, np.random.default_rng(0))
    assert len(drawn) == 40
    assert sorted(draw.number for draw in drawn.values()) == [1] * 20 + [2] * 20


@pytest.mark.slow
@pytest.mark.parametrize("detector", ["halludetect", "metarag"])
def test_on_gold_twenty_chosen_labels_beat_twenty_random_ones(detector: str) -> None:
    run = read_sample(detector)
    evenly, chosen = (measure(run, LABELS, design, 200)[0] for design in (draw_evenly, choose))
    assert chosen.width < 0.95 * evenly.width
    assert 0.93 <= chosen.covered <= 0.97
    assert abs(chosen.bias) < 0.03
