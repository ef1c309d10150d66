"""Whose labels of a turn count, and what is said of the others."""

from __future__ import annotations

from typing import Any

from hallulab.scenarios.datasets.annotations import AnnotatedTurn, AnnotationLine, Draw
from hallulab.scenarios.labelled import GoldSpan
from hallulab.simulator.metrics.annotations import Annotations, LabelSource, count_annotations


def line(conversation: str, spans: int = 0, **more: Any) -> AnnotatedTurn:
    noted = AnnotationLine(conversation=conversation, turn=0, key=conversation, spans=(), **more)
    return AnnotatedTurn(noted, (GoldSpan(start=0, end=1),) * spans, 20)


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


def test_a_line_that_adjudicates_counts_before_all_others_wherever_it_stands() -> None:
    own = [line("c", 1, annotator="person:asha"), line("c", 0, annotator="person:ben")]
    settled = line("c", 2, annotator="person:ben", adjudicates=("person:asha", "person:ben"))
    for turns in ([settled, *own], [*own, settled]):
        found = count_annotations(turns)
        assert found.counts == {("c", 0): 2}
        assert found.others == {("person:asha", None): {("c", 0): 1}, ("person:ben", None): {("c", 0): 0}}
        assert found.sources == (
            LabelSource(annotator="person:ben", guideline=None, turns=1, adjudicates=True),
        )


def test_lines_that_adjudicate_do_not_choose_the_guideline() -> None:
    old = [line("c", 1, guideline="x"), line("c", 5, guideline="x", adjudicates=("person",))]
    assert count_annotations([*old, line("c", 3, guideline="y")]).counts == {("c", 0): 3}
