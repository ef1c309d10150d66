from __future__ import annotations

from pathlib import Path

import pytest

from benchmarks.decide_run import CASES, Case, Outcome, measure, name_decision
from tests.places import ROOT


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
def test_the_docs_have_the_first_row(tmp_path: Path) -> None:
    found = measure(CASES[0], range(3), tmp_path)
    assert found == Outcome("0.4, 0.8", 36, 0.2, 3, 2, 0, 104 / 3, 208 / 3)
    assert "| 0.4, 0.8 | 36 | 0.2 | 3 | 2 | 0 | 1 | 34.7 | 69.3 |" in (ROOT / "docs/decide.md").read_text()
