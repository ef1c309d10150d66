from __future__ import annotations

from pathlib import Path

import pytest

from benchmarks.decide_run import CASES, Case, Outcome, format_outcome, measure, name_decision


@pytest.mark.parametrize(
    ("rates", "margin", "right"),
    [
        ({"a": 0.4, "b": 0.8}, 0.2, "a"),
        ({"a": 0.8, "b": 0.4, "c": 0.4}, 0.2, "b = c"),
        ({"a": 0.4, "b": 0.8}, 0.5, "a = b"),
    ],
)
def test_it_is_known_what_is_right(rates: dict[str, float], margin: float, right: str) -> None:
    assert Case(rates, margin).right == right


def test_what_is_decided_has_a_name_and_what_is_open_has_none() -> None:
    assert name_decision({"best": "a", "alike": []}) == "a"
    assert name_decision({"best": None, "alike": ["b", "c"]}) == "b = c"
    assert name_decision({"best": None, "alike": []}) is None


@pytest.mark.slow
def test_the_demos_pack_decides_between_two_chatbots(tmp_path: Path) -> None:
    assert measure(CASES[0], range(2), tmp_path) == Outcome("0.4, 0.8", 132, 0.2, 2, 2, 0, 38.0, 76.0)


def test_a_row_counts_what_is_open() -> None:
    cells = format_outcome(Outcome("0.4, 0.8", 132, 0.2, 10, 8, 1, 38.0, 76.0))
    assert cells == ("0.4, 0.8", "132", "0.2", "10", "8", "1", "1", "38.0", "76.0")
