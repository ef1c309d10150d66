"""Whose labels of a turn count, and what is said of the others."""

from __future__ import annotations

from typing import Any

import pytest

from hallulab.scenarios.datasets.annotations import AnnotatedTurn, AnnotationLine, Draw, Quotation
from hallulab.scenarios.labelled import GoldSpan
from hallulab.simulator.metrics.annotations import (
    Annotations,
    AnnotatorPair,
    Conflict,
    LabelSource,
    compare_annotators,
    count_annotations,
    list_conflicts,
)
from tests.builders import places


def line(conversation: str, spans: int = 0, **more: Any) -> AnnotatedTurn:
    noted = AnnotationLine(conversation=conversation, turn=0, key=conversation, spans=(), **more)
    return AnnotatedTurn(noted, (GoldSpan(start=0, end=1),) * spans, 20)


def test_a_line_without_more_is_a_person_s_and_was_not_drawn() -> None:
    assert count_annotations([line("c", 2), line("d")]) == Annotations(
        counts={("c", 0): 2, ("d", 0): 0}, sources=(LabelSource(annotator="person", guideline=None, turns=2),)
    )


def test_how_a_turn_was_drawn_is_kept() -> None:
    found = count_annotations([line("c", propensity=0.25, draw=3, stratum=1)])
    assert found.drawn == {("c", 0): Draw(3, 1, 0.25)}


def test_the_guideline_of_most_labels_counts_and_of_equally_many_the_last() -> None:
    labels = [line("c", 1, guideline="x"), line("c", 3, guideline="y")]
    assert count_annotations(labels).counts == {("c", 0): 3}
    found = count_annotations([*labels, line("d", 0, guideline="x")])
    assert found.counts == {("c", 0): 1, ("d", 0): 0}
    assert found.others == {("person", "y"): {("c", 0): 3}}
    assert found.by(("person", "y")).counts == {("c", 0): 3, ("d", 0): 0}
    # Lines that adjudicate do not choose the guideline.
    settled = line("c", 5, guideline="x", adjudicates=("person",))
    assert count_annotations([labels[0], settled, labels[1]]).counts == {("c", 0): 3}


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


ASHA, BEN = "person:asha", "person:ben"


def label(turn: int, who: str, *ends: tuple[int, int], severity: int = 3, **more: Any) -> AnnotatedTurn:
    quoted = tuple(Quotation(quote="x", severity=severity) for _ in ends)
    line = AnnotationLine(conversation="c", turn=turn, key="k", spans=quoted, annotator=who, **more)
    return AnnotatedTurn(line, places(*ends), 20)


def settle(turn: int, *ends: tuple[int, int], **more: Any) -> AnnotatedTurn:
    return label(turn, BEN, *ends, adjudicates=(ASHA, BEN), **more)


LABELS = [
    *(label(0, ASHA, (0, 4), (6, 9)), label(0, BEN, (3, 5))),
    *(label(1, ASHA), label(1, BEN)),
    *(label(2, ASHA), label(2, BEN, (0, 1))),
    *(label(3, ASHA, (0, 1)), label(3, BEN, (0, 1))),
    label(4, BEN, (0, 1)),
]


def test_two_annotators_are_compared_on_the_turns_of_both() -> None:
    [pair] = compare_annotators(LABELS)
    gamma = pair.gamma
    assert gamma is not None
    assert 0 < gamma < 1
    assert pair == AnnotatorPair(
        annotator=ASHA,
        other=BEN,
        guideline=None,
        turns=4,
        same=3,
        kappa=0.5,
        places=6,
        gamma=gamma,
        no_gamma=None,
        spans=6,
        shared=4,
    )


def test_another_severity_of_the_same_place_agrees_less() -> None:
    def gamma_of(severity: int) -> float:
        pairs = (((turn, turn + 3), turn) for turn in range(4))
        found = [
            one
            for at, turn in pairs
            for one in (label(turn, ASHA, at), label(turn, BEN, at, severity=severity))
        ]
        return compare_annotators(found)[0].gamma or 0.0

    assert gamma_of(3) == 1.0
    assert 0.5 < gamma_of(4) < 1.0


def test_labels_under_another_guideline_are_not_compared() -> None:
    assert compare_annotators([label(0, ASHA), label(0, BEN, guideline="g")]) == []


def test_neither_kappa_nor_gamma_is_known_where_nobody_marked_a_place() -> None:
    [pair] = compare_annotators([one for turn in (0, 1) for one in (label(turn, ASHA), label(turn, BEN))])
    assert pair.kappa is None
    assert (pair.places, pair.gamma, pair.no_gamma) == (0, None, "nobody marked a place")


def test_agreement_is_of_annotators_own_labels_alone() -> None:
    settled = [settle(turn, (0, 4)) for turn in range(4)]
    assert compare_annotators([*settled, *LABELS]) == compare_annotators(LABELS)


def test_conflicts_begin_with_the_turns_that_one_calls_clean() -> None:
    found = list_conflicts(LABELS)
    assert found == [Conflict(("c", 2), {ASHA: 0, BEN: 1}, None), Conflict(("c", 0), {ASHA: 2, BEN: 1}, None)]
    assert [one.of_kind for one in found] == [True, False]


def test_as_many_places_elsewhere_are_a_conflict() -> None:
    found = list_conflicts([label(0, ASHA, (0, 4)), label(0, BEN, (5, 9))])
    assert found == [Conflict(("c", 0), {ASHA: 1, BEN: 1}, None)]


def test_settled_conflicts_come_last_and_name_the_decision() -> None:
    decision = settle(2, (0, 1))
    found = list_conflicts([decision, *LABELS])
    assert [(one.place, one.decision) for one in found] == [(("c", 0), None), (("c", 2), decision.line)]


@pytest.mark.parametrize("more", [[settle(2), label(2, "person:cora")], [settle(2, guideline="g")]])
def test_a_decision_without_an_annotator_or_under_another_guideline_leaves_the_conflict_open(
    more: list[AnnotatedTurn],
) -> None:
    found = list_conflicts([*LABELS, *more])
    assert {one.place: one.decision for one in found}["c", 2] is None
