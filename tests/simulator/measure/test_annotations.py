"""Whose labels of a turn count, and what is said of the others."""

from __future__ import annotations

from typing import Any

from hallulab.scenarios.datasets.gold import AnnotatedTurn, Annotation, Draw
from hallulab.scenarios.labelled import GoldSpan
from hallulab.simulator.measure.annotations import Annotations, LabelSource, count_annotations


def line(conversation: str, spans: int = 0, **more: Any) -> AnnotatedTurn:
    noted = Annotation(conversation=conversation, turn=0, key=conversation, spans=(), **more)
    return AnnotatedTurn(noted, (GoldSpan(start=0, end=1),) * spans)


def test_a_line_without_more_is_a_person_s_and_was_not_drawn() -> None:
    assert count_annotations([line("c", 2), line("d")]) == Annotations(
        counts={("c", 0): 2, ("d", 0): 0},
        sources=(LabelSource(annotator="person", guideline=None, turns=2),),
    )


def test_how_a_turn_was_drawn_is_kept() -> None:
    found = count_annotations([line("c", propensity=0.25, draw=3, stratum=1)])
    assert found.drawn == {("c", 0): Draw(3, 1, 0.25)}


def test_the_guideline_of_most_labels_counts() -> None:
    found = count_annotations(
        [line("c", 1, guideline="x"), line("c", 3, guideline="y"), line("d", 0, guideline="x")]
    )
    assert found.counts == {("c", 0): 1, ("d", 0): 0}
    assert found.others == {("person", "y"): {("c", 0): 3}}
    assert found.by(("person", "y")).counts == {("c", 0): 3, ("d", 0): 0}


def test_of_equally_many_labels_the_last_guideline_counts() -> None:
    found = count_annotations([line("c", 1, guideline="x"), line("c", 3, guideline="y")])
    assert found.counts == {("c", 0): 3}


def test_a_person_s_label_counts_before_a_model_s() -> None:
    found = count_annotations(
        [line("c", 1, annotator="model:m"), line("c", 2), line("d", annotator="model:m")]
    )
    assert found.counts == {("c", 0): 2, ("d", 0): 0}
    assert found.others == {("model:m", None): {("c", 0): 1}}
    assert found.sources == (
        LabelSource(annotator="model:m", guideline=None, turns=1),
        LabelSource(annotator="person", guideline=None, turns=1),
    )
