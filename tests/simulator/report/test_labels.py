"""What a report says of those who labelled, and of other guidelines."""

from __future__ import annotations

from hallulab.simulator.metrics.annotations import LabelSource
from hallulab.simulator.metrics.corrections import Correction
from hallulab.simulator.metrics.labels import (
    OtherWinner,
    compare_labels,
    describe_labels,
    find_lowest,
)

PEOPLE = LabelSource(annotator="person", guideline="abc", turns=20)
MODEL = LabelSource(annotator="model:m", guideline=None, turns=1)
STRICT = LabelSource(annotator="person", guideline="xyz", turns=5)
CHANGED = OtherWinner(detector="d", labels=STRICT, lowest="a", lowest_by_them="b")


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


def test_labels_that_change_the_winner_are_warned_of() -> None:
    found = [*compare_labels({"d": rows(a=1, b=2)}, {STRICT: {"d": rows(a=3, b=2)}})]
    assert found == [CHANGED]
    assert [*describe_labels([], found)] == [
        "Warning: by d, corrected, a has the lowest HPT-1; with other labels of the same turns, 5 turns by "
        "people (guideline xyz), it would be b."
    ]


def test_labels_with_the_same_winner_are_not() -> None:
    assert not [*compare_labels({"d": rows(a=1, b=2)}, {STRICT: {"d": rows(a=1.5, b=2)}})]


def test_a_single_corrected_chatbot_wins_nothing() -> None:
    assert find_lowest(rows(a=1, b=None)) is None
