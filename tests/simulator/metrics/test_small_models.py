"""Signs of a model that is too small for printed words."""

from __future__ import annotations

from typing import Any

import pytest

from hallulab.scenarios.transcript import Unit
from hallulab.simulator.metrics.small_models import SignCount, find_signs


def fact(**said: str) -> Unit:
    """A factoid whose variants were verified by a printed word each."""
    details: dict[str, Any] = {}
    for name, word in said.items():
        key = name.replace("_", " ")
        details |= {key: "a variant", f"{key} penalty": 0.0, f"{key} P({word})": 1.0}
    return Unit(text="x", score=0.5, details=details)


@pytest.mark.parametrize(
    ("said", "met"),
    [
        ({"synonym_1": "YES", "antonym_1": "NO"}, False),
        ({"synonym_1": "NOT SURE", "antonym_1": "YES"}, False),
        ({"synonym_1": "YES", "synonym_2": "NO", "antonym_1": "NO", "antonym_2": "YES"}, True),
    ],
)
def test_a_fact_whose_rewording_and_opposite_are_affirmed_is_a_sign(said: dict[str, str], met: bool) -> None:
    assert list(find_signs([fact(**said)])) == [("agrees with opposites", met)]


@pytest.mark.parametrize(("severity", "met"), [(3.0, False), (4.0, True)])
def test_an_objection_that_the_filter_keeps_is_a_sign(severity: float, met: bool) -> None:
    graded = Unit(text="x", score=severity, details={"votes": 1.0, "refiner": "It matters."})
    assert list(find_signs([graded])) == [("filters nothing", met)]


def test_probabilities_and_rules_are_no_sign() -> None:
    units = (
        Unit(text="x", score=0.5, details={"synonym 1 P(YES)": 0.7, "antonym 1 P(YES)": 0.6}),
        Unit(text="x", score=1.0, details={"votes": 1.0, "rule": "repeats what the user said"}),
        Unit(text="x", details={"error": "no answer"}),
    )
    assert list(find_signs(units)) == []


def test_the_1_5b_model_looks_small_and_the_strong_one_does_not() -> None:
    """The counts that were measured (docs/methods.md)."""
    assert SignCount(met=10, seen=19).is_small("agrees with opposites")
    assert not SignCount(met=0, seen=212).is_small("agrees with opposites")
    assert SignCount(met=13, seen=14).is_small("filters nothing")
    assert not SignCount(met=75, seen=88).is_small("filters nothing")
    assert not SignCount(met=92, seen=191).is_small("filters nothing")


def test_few_answers_tell_nothing() -> None:
    assert not SignCount(met=9, seen=9).is_small("agrees with opposites")
    assert not SignCount(met=13, seen=13).is_small("filters nothing")
