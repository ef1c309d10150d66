"""What is counted of planted errors and their twins."""

from __future__ import annotations

from hallulab.scenarios.labelled import LabelledReply
from hallulab.scenarios.transcript import Judgement
from hallulab.simulator.bench.planted import PlantedRow, build_planted_rows, is_planted
from tests.builders import labelled, places
from tests.simulator.bench.material import FAILED, evaluation, judged

WRONG = "It costs 9 euros."


def pair(number: int, kind: str, turn: int = 0) -> list[LabelledReply]:
    told = {"kind": kind, "turn": turn, "context": 4}
    return [
        labelled(WRONG, True, id=f"e{number}", spans=places((9, 10)), meta={**told, "twin": f"c{number}"}),
        labelled("It costs 2 euros.", id=f"c{number}", spans=(), meta={**told, "twin": f"e{number}"}),
    ]


def scored(score: float, *ends: tuple[int, int]) -> Judgement:
    return judged(*ends, text=WRONG, score=score, flagged=score >= 0.5)


def rows(replies: list[LabelledReply], *judgements: Judgement) -> dict[tuple[str, str, str], PlantedRow]:
    found = build_planted_rows([evaluation(replies, *judgements)])
    return {(row.kind, row.turn, row.context): row for row in found or ()}


def test_recall_place_and_alarms_are_counted_over_scored_pairs() -> None:
    replies = pair(0, "number") + pair(1, "number") + pair(2, "name", turn=2) + pair(3, "name", turn=2)
    found = rows(
        replies,
        *(scored(0.9, (8, 12)), scored(0.1)),
        *(scored(0.6, (0, 2)), scored(0.7, (0, 2))),
        *(scored(0.2), scored(0.2)),
        *(scored(0.9), FAILED),
    )
    assert list(found) == [
        ("all", "all", "all"),
        ("name", "all", "all"),
        ("number", "all", "all"),
        ("all", "0", "all"),
        ("all", "2", "all"),
        ("all", "all", "4"),
        ("name", "2", "4"),
        ("number", "0", "4"),
    ]
    every, names, numbers = list(found.values())[:3]
    assert (every.pairs, every.coverage) == (4, 0.75)
    assert (every.recall, every.placed, every.false_alarms, every.told_apart) == (
        0.666667,
        0.333333,
        0.333333,
        0.5,
    )
    assert (names.pairs, names.coverage, names.recall, names.told_apart) == (2, 0.5, 0.0, 0.5)
    assert (numbers.recall, numbers.placed, numbers.false_alarms, numbers.told_apart) == (1.0, 0.5, 0.5, 0.5)
    assert found["number", "0", "4"].model_dump(exclude={"turn", "context"}) == numbers.model_dump(
        exclude={"turn", "context"}
    )


def test_what_nobody_scored_has_no_numbers() -> None:
    row = rows(pair(0, "number"), FAILED, FAILED)["all", "all", "all"]
    assert (row.pairs, row.coverage, row.recall, row.placed, row.told_apart) == (1, 0.0, None, None, None)


def test_an_interval_needs_six_groups() -> None:
    replies = [
        one.model_copy(update={"group": f"g{number}"})
        for number in range(8)
        for one in pair(number, "number" if number < 6 else "name")
    ]
    judgements = [scored(0.9 if place in (0, 4) else 0.1) for place in range(16)]
    found = rows(replies, *judgements)
    low, high = found["number", "all", "all"].recall_ci95 or (0.0, 0.0)
    assert 0.0 <= low < 0.333333 < high < 1.0
    # No false alarm with six groups: 1 - 0.025^(1/6).
    assert found["number", "all", "all"].false_alarms_ci95 == (0.0, 0.459258)
    assert found["name", "all", "all"].recall_ci95 is None


def test_other_data_has_no_planted_errors() -> None:
    assert build_planted_rows([evaluation([labelled()], scored(0.1))]) is None
    assert not is_planted([labelled()])
    assert is_planted(pair(0, "number"))
