"""Halves of a run by its repeats."""

from __future__ import annotations

from hallulab.simulator.metrics.comparison import split_by_repeat


def test_each_personas_seeds_go_in_turn_into_the_halves() -> None:
    users = [("s", name, seed) for name in ("asha", "ravi") for seed in (7, 8, 9)]
    one, other = split_by_repeat([*users, *users]) or (set(), set())
    assert sorted(seed for _, _, seed in one) == [7, 7, 9, 9]
    assert sorted(seed for _, _, seed in other) == [8, 8]


def test_a_persona_with_a_single_seed_leaves_no_halves() -> None:
    assert split_by_repeat([("s", "asha", 0), ("s", "asha", 1), ("s", "ravi", 0)]) is None
    assert split_by_repeat([]) is None
