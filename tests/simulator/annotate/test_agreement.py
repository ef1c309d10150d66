"""How far annotators agree, and where they do not."""

from __future__ import annotations

from typing import Any

from hallulab.scenarios.datasets.gold import AnnotatedTurn, Annotation
from hallulab.simulator.annotate.agreement import (
    AnnotatorPair,
    Conflict,
    compare_annotators,
    list_conflicts,
)
from tests.builders import places

ASHA, BEN = "person:asha", "person:ben"


def label(turn: int, who: str, *ends: tuple[int, int], **more: Any) -> AnnotatedTurn:
    line = Annotation(conversation="c", turn=turn, key="k", spans=(), annotator=who, **more)
    return AnnotatedTurn(line, places(*ends))


LABELS = [
    *(label(0, ASHA, (0, 4), (6, 9)), label(0, BEN, (3, 5))),
    *(label(1, ASHA), label(1, BEN)),
    *(label(2, ASHA), label(2, BEN, (0, 1))),
    *(label(3, ASHA, (0, 1)), label(3, BEN, (0, 1))),
    label(4, BEN, (0, 1)),
]


def test_two_annotators_are_compared_on_the_turns_of_both() -> None:
    assert compare_annotators(LABELS) == [
        AnnotatorPair((ASHA, BEN), None, turns=4, same=3, kappa=0.5, spans=6, shared=4)
    ]


def test_labels_under_another_guideline_are_not_compared() -> None:
    assert compare_annotators([label(0, ASHA), label(0, BEN, guideline="g")]) == []


def test_kappa_is_not_known_where_all_turns_are_called_the_same() -> None:
    [pair] = compare_annotators([label(0, ASHA), label(0, BEN)])
    assert pair.kappa is None


def test_conflicts_begin_with_the_turns_that_one_calls_clean() -> None:
    found = list_conflicts(LABELS)
    assert found == [
        Conflict(("c", 2), {ASHA: 0, BEN: 1}, None),
        Conflict(("c", 0), {ASHA: 2, BEN: 1}, None),
    ]
    assert [one.of_kind for one in found] == [True, False]
