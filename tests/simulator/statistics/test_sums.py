"""Sums that do not depend on the order, and that merge."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.strategies import floats, lists

from hallulab.simulator.statistics.intervals import Ratio
from hallulab.simulator.statistics.sums import (
    ExactSum,
    PersonSums,
    PersonTable,
    combine_spreads,
    measure_spread,
)

ASHA, RAVI = ("pack", "asha"), ("pack", "ravi")


@given(lists(floats(-1e12, 1e12)), lists(floats(0.0, 1.0)))
def test_an_exact_sum_is_that_of_fsum_in_parts_too(first: list[float], second: list[float]) -> None:
    one, two = ExactSum(), ExactSum()
    for value in first:
        one.add(value)
    for value in second:
        two.add(value)
    two.merge(one)
    assert two.value() == math.fsum([*first, *second])


def test_numbers_of_a_person_add_up_whenever_they_come() -> None:
    sums = PersonSums(2)
    for person, values in ((RAVI, (1, 2)), (ASHA, (10, 20)), (RAVI, (100, 200))):
        sums.add(person, ("d",), values)
    assert list(sums.items(("d",))) == [(RAVI, (101, 202)), (ASHA, (10, 20))]
    assert list(sums.items(("e",))) == []


def test_merged_persons_are_in_the_order_of_their_names() -> None:
    one, two = PersonSums(1), PersonSums(1)
    one.add(RAVI, ("d",), (1,))
    two.add(ASHA, ("d",), (2,))
    two.add(ASHA, ("e",), (3,))
    one.merge(two)
    assert list(one.items(("d",))) == [(ASHA, (2,)), (RAVI, (1,))]
    assert sorted(one.keys) == [("d",), ("e",)]


def test_tables_of_persons_merge_with_the_spread_of_their_seeds() -> None:
    parts = [PersonTable(2), PersonTable(2)]
    parts[0].add(RAVI, (2, 4), [4.0, 6.0])
    parts[1].add(ASHA, (1, 0), [0.0, 2.0])
    parts[0].merge(parts[1])
    assert parts[0].ratios(0, 1) == [Ratio(2, 4)]
    assert parts[0].seed_share() == 0.125


def test_a_person_in_two_parts_is_refused() -> None:
    one, two = PersonTable(0), PersonTable(0)
    one.add(ASHA, (), [1.0])
    two.add(ASHA, (), [1.0])
    with pytest.raises(ValueError, match="one persona were counted in two parts"):
        one.merge(two)


def seed_share(values: Iterable[tuple[object, float]]) -> float | None:
    """The share of seeds, of (persona, number of a conversation)."""
    seeds = defaultdict(list)
    for persona, value in values:
        seeds[persona].append(value)
    return combine_spreads([*map(measure_spread, seeds.values())])


def test_the_share_by_hand() -> None:
    # Means 1, 5; seeds: (4 * 1) / 2 = 2. Between: 2 * 8 / 1 = 16, personas: (16 - 2) / 2 = 7.
    # Of the mean: 7 / 2 + 2 / 4 = 4, of which 0.5 is that of seeds.
    assert seed_share([("a", 0.0), ("a", 2.0), ("b", 4.0), ("b", 6.0)]) == 0.125


def test_unequal_numbers_of_seeds_by_hand() -> None:
    # Means 1, 4; seeds: 2 / 1 = 2; mean 2. Between: 2 * 1 + 1 * 4 = 6, n0 = 3 - 5 / 3 = 4 / 3, personas: 3.
    # Of the mean: 3 / 2 + 2 / 3.
    assert seed_share([("a", 0.0), ("a", 2.0), ("b", 4.0)]) == pytest.approx((2 / 3) / (3 / 2 + 2 / 3))


def test_personas_that_differ_less_than_chance_do_not_count() -> None:
    assert seed_share([("a", 0.0), ("a", 2.0), ("b", 0.0), ("b", 2.0)]) == 1.0


@pytest.mark.parametrize(
    "values",
    [
        [],
        [("a", 1.0)],
        [("a", 0.0), ("a", 1.0)],
        [("a", 0.0), ("b", 1.0)],
        [("a", 1.0), ("a", 1.0), ("b", 1.0)],
    ],
)
def test_one_persona_or_single_seeds_or_equal_numbers_tell_nothing(values: list[tuple[str, float]]) -> None:
    assert seed_share(values) is None


values = st.lists(st.tuples(st.sampled_from("abc"), st.integers(0, 9).map(float)), min_size=2, max_size=12)


@given(values)
def test_a_share_is_between_0_and_1(values: list[tuple[str, float]]) -> None:
    share = seed_share(values)
    assert share is None or 0 <= share <= 1


@given(values, st.integers(1, 5), st.integers(-5, 5))
def test_the_unit_of_the_numbers_does_not_matter(
    values: list[tuple[str, float]], scale: int, offset: int
) -> None:
    moved = [(name, value * scale + offset) for name, value in values]
    assert seed_share(moved) == pytest.approx(seed_share(values))


def test_it_estimates_the_true_share() -> None:
    """Personas vary with variance 1, seeds with 4; of a mean over 400 · 5, seeds make 0.002 of 0.0045."""
    generator = np.random.default_rng(3)
    shares = []
    for _ in range(10):
        personas = generator.normal(size=400)
        drawn = personas[:, None] + generator.normal(scale=2, size=(400, 5))
        shares.append(
            seed_share([(persona, float(value)) for persona in range(400) for value in drawn[persona]])
        )
    assert np.mean([share for share in shares if share is not None]) == pytest.approx(4 / 9, abs=0.03)
