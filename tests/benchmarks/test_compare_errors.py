"""Equal bots are seldom told apart, in a short form of `python -m benchmarks.compare_errors`."""

from __future__ import annotations

import numpy as np

from benchmarks.compare_errors import BOTS, DESIGNS, compare_made, draw_people, make_run, measure_shares


def test_equal_bots_are_seldom_told_apart_and_much_worse_ones_always() -> None:
    apart, _ = measure_shares("other seeds", 8, 0.0, 8)
    _, found = measure_shares("other seeds", 13, 4.0, 2)
    assert (apart <= 0.25, found) == (True, 1.0)


def test_each_design_pairs_what_it_says() -> None:
    found = {
        name: (line.paired, line.same_seeds, line.personas)
        for name in DESIGNS
        for line in compare_made(np.random.default_rng(0), name, 8, 0.0)[:1]
    }
    assert found == {
        "same seeds": (True, True, 8),
        "other seeds": (True, False, 8),
        "two seeds against one": (True, False, 8),
        "other personas": (False, False, 8),
    }


def test_a_made_up_run_has_the_rates_of_its_personas() -> None:
    random = np.random.default_rng(0)
    people = draw_people(random, 300, "p")
    run = make_run(random, dict.fromkeys(BOTS, people), range(4), 0.5)
    tallies = [one.tally("d") for one in run.conversations]
    rate = sum(one.hallucinations for one in tallies) / sum(one.scored_turns for one in tallies)
    assert abs(rate - sum(people.values()) / 300 - 0.5) < 0.05
