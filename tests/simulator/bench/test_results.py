"""Parts of a data set: what there is of them, and what was scored of that."""

from __future__ import annotations

from typing import Any

from hallulab.scenarios.labelled import GoldSpan, LabelledReply
from hallulab.scenarios.transcript import Judgement
from hallulab.simulator.bench.results import measure
from tests.simulator.bench.material import DATA, FAILED, FAILED_SENTENCE, evaluation, judged, reply


def parts(level: str, by: str, *said: tuple[LabelledReply, Judgement]) -> dict[str, dict[str, Any]]:
    found = measure([evaluation([one for one, _ in said], *(one for _, one in said))], DATA).report.breakdown
    return {row.part: row for row in found if (row.level, row.by) == (level, by)}


def test_a_part_of_which_nothing_was_scored_stays_without_numbers() -> None:
    found = parts(
        "response",
        "task",
        (reply((0, 5)), judged((0, 5))),
        (reply((0, 5), group="h", task="summary"), FAILED),
    )
    numbers = ("n", "positives", "scored", "scored_positives", "coverage", "f1")
    assert [getattr(found["qa"], name) for name in numbers] == [1, 1, 1, 1, 1.0, 1.0]
    assert [getattr(found["summary"], name) for name in numbers] == [1, 1, 0, 0, 0.0, None]


def test_items_of_a_part_that_could_not_be_scored_lower_its_coverage() -> None:
    found = parts(
        "sentence",
        "task",
        (reply((18, 36), task="summary"), judged()),
        (reply((18, 36), group="h"), judged((0, 17), units=FAILED_SENTENCE)),
    )
    numbers = ("n", "positives", "scored", "scored_positives", "precision")
    assert [getattr(found["qa"], name) for name in numbers] == [2, 1, 1, 0, 0.0]
    assert [getattr(found["summary"], name) for name in numbers] == [2, 1, 2, 1, None]


def test_an_error_type_has_its_own_items_and_all_clean_ones() -> None:
    found = parts(
        "sentence",
        "error_type",
        (reply((18, 36)), judged((0, 17), units=FAILED_SENTENCE)),
        (reply((0, 17), group="h"), judged((0, 17))),
        (reply((0, 17), group="i"), FAILED),
    )
    row = found["hallucination"]
    numbers = ("n", "positives", "scored", "scored_positives", "coverage", "recall", "precision")
    assert [getattr(row, name) for name in numbers] == [6, 3, 3, 1, 0.5, 1.0, 0.5]


def test_lengths_are_thirds_of_the_replies_by_their_words() -> None:
    each = [(reply(text=" ".join(["word"] * n), group=str(n)), judged()) for n in range(1, 7)]
    assert {name: row.n for name, row in parts("response", "length", *each).items()} == {
        "1: up to 2 words": 2,
        "2: up to 4 words": 2,
        "3: more than 4 words": 2,
    }


def test_items_of_another_error_type_are_in_no_number_of_an_error_type() -> None:
    def of_kind(label: str, group: str) -> LabelledReply:
        return reply((0, 5), group=group, spans=(GoldSpan(start=0, end=5, label=label),))

    found = parts(
        "response",
        "error_type",
        (of_kind("conflict", "g"), judged((0, 5))),
        (of_kind("baseless", "h"), judged((0, 5))),
        (reply(group="i"), judged()),
    )
    assert [getattr(found["conflict"], name) for name in ("n", "positives", "precision")] == [2, 1, 1.0]


UNKNOWN = reply(group="z", spans=None, label=True)
"""A hallucinated reply of which nobody said where."""


def test_a_reply_without_gold_spans_is_in_no_part_of_the_sentences() -> None:
    unknown = UNKNOWN.model_copy(update={"task": "summary"})
    found = parts("sentence", "task", (unknown, judged()), (reply((0, 5)), judged((0, 5))))
    assert {name: row.n for name, row in found.items()} == {"qa": 2}


def test_a_reply_without_gold_spans_does_not_shift_the_sentences_of_an_error_type() -> None:
    found = parts("sentence", "error_type", (UNKNOWN, judged()), (reply((0, 5)), judged((0, 5))))
    assert [getattr(found["hallucination"], name) for name in ("n", "positives")] == [2, 1]


def test_a_field_of_meta_divides_the_replies_and_all_of_them_have_a_row() -> None:
    hard, easy = {"level": "hard"}, {"level": "easy"}
    replies = [reply((0, 5), meta=hard), reply((0, 5), group="h", meta=hard), reply(group="i", meta=easy)]
    judgements = (judged((0, 5)), judged(), judged((0, 5)), judged())
    said = evaluation([*replies, reply(group="j")], *judgements)
    report = measure([said], DATA, fields=("level",)).report
    rows = [(row.by, row.part, row.n, row.accuracy) for row in report.parts_by_meta]
    assert rows == [
        ("meta.level", "easy", 1, 0.0),
        ("meta.level", "hard", 2, 0.5),
        ("meta.level", "not told", 1, 1.0),
        ("all", "all", 4, 0.5),
    ]
    assert next(row.accuracy for row in report.replies) == 0.5
    assert measure([said], DATA).report.parts_by_meta == []
