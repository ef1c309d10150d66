"""Sums that do not depend on the order, and that merge."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis.strategies import floats, lists

from hallulab.simulator.metrics.run_sums import PersonTable
from hallulab.simulator.statistics.intervals import Ratio
from hallulab.simulator.statistics.sums import ExactSum, PersonSums

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
