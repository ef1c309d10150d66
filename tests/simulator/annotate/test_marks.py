"""What an annotator's marks make of a turn."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from hallulab.scenarios.datasets.annotations import Quotation
from hallulab.scenarios.errors import UsageError
from hallulab.simulator.annotate.marks import (
    FlagMark,
    Found,
    MarkedFlag,
    conclude,
    drop_undone,
    list_flags,
    read_marks,
)
from tests.builders import scored

REPLY = "The fee is Rs 500. It takes 3 days. The fee is Rs 500."
FEE = MarkedFlag("a", 11, 17, "Rs 500")
WHOLE = MarkedFlag("b", 0, 18, "The fee is Rs 500.")
DAYS = MarkedFlag("a", 28, 34, "3 days")
GHOST = MarkedFlag("a", None, None, "10 years")


def mark(kind: str, flag: MarkedFlag | None = None, **fields: Any) -> FlagMark:
    about = {} if flag is None else flag._asdict()
    return FlagMark.model_validate({"conversation": "c", "turn": 0, "kind": kind, **about, **fields})


def missed(start: int, end: int, **fields: Any) -> FlagMark:
    return mark("missed", start=start, end=end, text=REPLY[start:end], **fields)


def say(*marks: FlagMark, flags: tuple[MarkedFlag, ...] = (FEE, DAYS)) -> Found | None:
    return conclude(marks, flags, REPLY)


def quote(text: str, severity: int = 3, reason: str = "", start: int | None = None) -> Quotation:
    return Quotation(quote=text, severity=severity, reason=reason, start=start)


def test_a_turn_is_annotated_when_each_flag_has_a_mark() -> None:
    assert say() is None
    assert say(mark("right", FEE)) is None
    assert say(mark("right", FEE), mark("wrong", DAYS)) == Found((quote("Rs 500"),))


def test_done_takes_flags_without_a_mark_for_wrong() -> None:
    assert say(mark("right", DAYS, severity=5, reason="why"), mark("done")) == Found(
        (quote("3 days", 5, "why"),)
    )


def test_a_turn_without_flags_is_not_annotated_by_itself() -> None:
    assert say(flags=()) is None
    assert say(missed(28, 34), flags=()) is None
    assert say(missed(28, 34), mark("done"), flags=()) == Found((quote("3 days"),))


def test_the_last_mark_of_a_flag_counts() -> None:
    assert say(mark("right", FEE), mark("wrong", FEE), flags=(FEE,)) == Found(())


def test_clean_takes_back_what_was_marked_before_it() -> None:
    assert say(mark("right", FEE), missed(28, 34), mark("clean")) == Found(())
    assert say(mark("clean"), mark("right", FEE)) == Found((quote("Rs 500"),))


def test_unknown_has_no_hallucinations_until_another_mark() -> None:
    assert say(mark("right", FEE), mark("unknown")) == Found((), unknown=True)
    assert say(mark("unknown"), mark("right", FEE)) is None
    assert say(mark("unknown"), mark("right", FEE), mark("done")) == Found((quote("Rs 500"),))


def test_places_that_share_a_character_are_one_with_the_greatest_severity_and_each_reason() -> None:
    found = say(
        mark("right", FEE, severity=2, reason="It is Rs 200."),
        mark("right", WHOLE, severity=4, reason="No fee."),
        missed(14, 21, severity=1, reason="No fee."),
        flags=(FEE, WHOLE),
    )
    assert found == Found((quote("The fee is Rs 500. It", 4, "No fee. / It is Rs 200."),))


def test_places_that_only_touch_are_two() -> None:
    found = say(missed(0, 3), missed(3, 7), mark("done"))
    assert found == Found((quote("The"), quote(" fee")))


def test_words_that_stand_twice_are_told_apart_by_their_place() -> None:
    assert say(missed(47, 53), mark("done")) == Found((quote("Rs 500", start=47),))
    assert say(missed(11, 17), missed(47, 53), mark("done")) == Found((quote("Rs 500"), quote("Rs 500")))


def test_a_flag_whose_words_do_not_stand_in_the_reply_needs_a_mark_too() -> None:
    assert say(mark("right", FEE), flags=(FEE, GHOST)) is None
    assert say(mark("right", FEE), mark("wrong", GHOST), flags=(FEE, GHOST)) == Found((quote("Rs 500"),))


def test_undo_takes_back_the_mark_before_that_still_stands() -> None:
    one, two, undo = mark("right", FEE), mark("wrong", DAYS), mark("undo")
    assert drop_undone([one, two, undo, undo]) == []
    assert drop_undone([undo, one, two, undo, mark("clean")]) == [one, mark("clean")]


def test_equal_flags_of_a_detector_are_one() -> None:
    assert list_flags([scored("c", 0, [(0, 2), (0, 2), None]), scored("c", 1, [(1, 2)])], 0) == [
        MarkedFlag("d", 0, 2, "x"),
        MarkedFlag("d", None, None, "x"),
    ]


def test_only_ones_own_marks_are_read(tmp_path: Path) -> None:
    path = tmp_path / "marks.jsonl"
    mine, others = mark("clean", annotator="person:asha"), mark("undo")
    path.write_text(f"{mine.model_dump_json()}\n{others.model_dump_json()}\n")
    assert read_marks(path, ("person:asha", None)) == [mine]
    assert read_marks(tmp_path / "none.jsonl", ("person", None)) == []


@pytest.mark.parametrize(
    "line",
    [
        '{"conversation": "c", "turn": 0, "kind": "right", "detector": "d"}',
        '{"conversation": "c", "turn": 0, "kind": "missed", "start": 1}',
        '{"conversation": "c", "turn": 0, "kind": "wrong"}',
        '{"conversation": "c", "turn": 0, "kind": "done", "annotator": "me"}',
    ],
)
def test_a_mark_that_lacks_something_is_refused(tmp_path: Path, line: str) -> None:
    path = tmp_path / "marks.jsonl"
    path.write_text(f"{line}\n")
    with pytest.raises(UsageError, match=r"marks\.jsonl, line 1"):
        read_marks(path, ("person", None))
