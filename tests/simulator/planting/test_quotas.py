"""Shares of names as whole numbers of dialogues."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hallulab.scenarios.errors import UsageError
from hallulab.simulator.planting.quotas import allot, cross, read_shares


def test_shares_are_read_with_their_names() -> None:
    assert read_shares("--manners", ["terse=0.2", "plain=0.8"]) == {"terse": 0.2, "plain": 0.8}
    assert read_shares("--manners", {"terse": 1.0}) == {"terse": 1.0}


def test_names_alone_share_evenly() -> None:
    assert read_shares("--topics", ["rail", "air"], {"air", "rail"}) == {"rail": 0.5, "air": 0.5}


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (
            ["rails=1"],
            "--topics rails: there is no such one (did you mean `rail`?). Give some of: air, rail.",
        ),
        (["rail=0.5"], "--topics: the shares add up to 0.5. They must add up to 1."),
        (
            ["rail=half"],
            "--topics rail=half: give each name once with its share, such as terse=0.2,plain=0.8, or names "
            "alone, which share evenly.",
        ),
    ],
)
def test_wrong_shares_are_one_sentence(given: list[str], message: str) -> None:
    with pytest.raises(UsageError) as error:
        read_shares("--topics", given, {"air", "rail"})
    assert str(error.value) == message


def test_the_largest_remainders_get_what_is_left() -> None:
    assert allot({"a": 0.5, "b": 0.3, "c": 0.2}, 7) == {"a": 4, "b": 2, "c": 1}
    assert allot({"a": 1.0, "b": 1.0, "c": 1.0}, 4) == {"a": 2, "b": 1, "c": 1}


@given(st.lists(st.floats(0.01, 1), min_size=1, max_size=8), st.integers(0, 2000))
def test_numbers_add_up_and_are_off_by_less_than_one(shares: list[float], number: int) -> None:
    counts = allot(dict(enumerate(shares)), number)
    assert sum(counts.values()) == number
    assert all(abs(counts[at] - share / sum(shares) * number) < 1 for at, share in enumerate(shares))


def test_a_table_has_its_sums_and_leaves_pairs_empty_that_are_not_allowed() -> None:
    table = cross(
        {"rail": 5, "air": 5},
        {"answer": 7, "decline": 3},
        [("rail", "answer"), ("air", "answer"), ("air", "decline")],
        exact_rows=True,
    )
    assert table == {("rail", "answer"): 5, ("air", "answer"): 2, ("air", "decline"): 3}


def test_a_table_is_even_where_all_pairs_are_allowed() -> None:
    pairs = [(row, column) for row in ("rail", "air") for column in ("answer", "decline")]
    assert cross({"rail": 4, "air": 4}, {"answer": 6, "decline": 2}, pairs, exact_rows=True) == {
        ("rail", "answer"): 3,
        ("rail", "decline"): 1,
        ("air", "answer"): 3,
        ("air", "decline"): 1,
    }


def test_rows_that_need_not_be_exact_give_way_to_columns() -> None:
    pairs = [("rail", "answer"), ("air", "decline")]
    rows, columns = {"rail": 2, "air": 2}, {"answer": 3, "decline": 1}
    assert cross(rows, columns, pairs, exact_rows=True) is None
    assert cross({"rail": 5, "air": 2}, columns, pairs, exact_rows=True) is None
    assert cross(rows, columns, pairs, exact_rows=False) == {("rail", "answer"): 3, ("air", "decline"): 1}


def test_rows_stay_as_they_are_where_columns_of_one_row_alone_are_uneven() -> None:
    pairs = [("rail", "answer"), ("rail", "decline"), ("air", "answer"), ("road", "answer")]
    rows, columns = {"rail": 10, "air": 10, "road": 10}, {"answer": 21, "decline": 9}
    table = cross(rows, columns, pairs, exact_rows=False)
    assert table == {
        ("rail", "answer"): 1,
        ("rail", "decline"): 9,
        ("air", "answer"): 10,
        ("road", "answer"): 10,
    }


def test_rows_that_add_up_to_more_than_the_columns_are_scaled() -> None:
    pairs = [("rail", "answer"), ("air", "answer")]
    table = cross({"rail": 30, "air": 10}, {"answer": 8}, pairs, exact_rows=False)
    assert table == {("rail", "answer"): 6, ("air", "answer"): 2}
