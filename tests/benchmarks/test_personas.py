"""Two personas name no best chatbot, in a short form of `python -m benchmarks.personas`."""

from __future__ import annotations

import numpy as np

from benchmarks.personas import count_named, lines, make_counts, make_tallies


def test_of_two_personas_none_is_named_and_with_seeds_as_personas_one_often_was() -> None:
    assert count_named(20, 2, 10, seeds_are_personas=False) == 0
    assert count_named(20, 2, 10, seeds_are_personas=True) > 4


def test_of_six_personas_a_best_is_seldom_named() -> None:
    assert count_named(20, 6, 3, seeds_are_personas=False) <= 3


def test_seeds_are_personas_by_other_names() -> None:
    counts = make_counts(np.random.default_rng(0), 2, 3)
    one, other = (make_tallies(counts, seeds_are_personas=counted)["a", "d"] for counted in (False, True))
    assert [item.pairing for item in one[:2]] == [("s", "0", 0), ("s", "0", 1)]
    assert [item.pairing for item in other[:2]] == [("s", "0-0", 0), ("s", "0-1", 1)]
    assert [item.hallucinations for item in one] == [item.hallucinations for item in other]


def test_the_table_has_a_line_for_each_cell() -> None:
    assert [line.split(" | ")[:2] for line in lines(2, [(2, 2)])][2:] == [["| 2", "2"]]
