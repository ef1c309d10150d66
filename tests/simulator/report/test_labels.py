"""What a report says of those who labelled, and of other guidelines."""

from __future__ import annotations

from hallulab.simulator.measure.annotations import LabelSource
from hallulab.simulator.measure.corrections import Correction
from hallulab.simulator.report.metrics.labels import (
    OtherWinner,
    compare_guidelines,
    describe_labels,
    find_lowest,
)

PEOPLE = LabelSource(annotator="person", guideline="abc", turns=20)
MODEL = LabelSource(annotator="model:m", guideline=None, turns=1)
CHANGED = OtherWinner(detector="d", guideline="xyz", turns=5, lowest="a", lowest_under_it="b")


def rows(**numbers: float | None) -> list[Correction]:
    return [
        Correction(chatbot=name, source="annotations", corrected_hpt_1=number)
        for name, number in numbers.items()
    ]


def test_people_and_guideline_are_named() -> None:
    assert [*describe_labels([PEOPLE], [])] == ["Labelled: 20 turns by people (guideline abc)."]


def test_it_is_said_that_a_model_labelled() -> None:
    assert [*describe_labels([MODEL], [])] == ["Labelled: 1 turn by model m, not by people."]
    assert [*describe_labels([PEOPLE, MODEL], [])] == [
        "Labelled: 20 turns by people (guideline abc) and 1 turn by model m, not only by people."
    ]


def test_a_guideline_that_changes_the_winner_is_warned_of() -> None:
    found = [*compare_guidelines({"d": rows(a=1, b=2)}, {"xyz": {"d": rows(a=3, b=2)}}, {"xyz": 5})]
    assert found == [CHANGED]
    assert [*describe_labels([], found)] == [
        "Warning: by d, corrected, a has the lowest HPT-1; under guideline xyz, by which 5 turns are "
        "labelled, too, it would be b."
    ]


def test_a_guideline_with_the_same_winner_is_not() -> None:
    assert not [*compare_guidelines({"d": rows(a=1, b=2)}, {"x": {"d": rows(a=1.5, b=2)}}, {"x": 5})]


def test_a_single_corrected_chatbot_wins_nothing() -> None:
    assert find_lowest(rows(a=1, b=None)) is None
