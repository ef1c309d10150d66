"""Somebody settles what annotators differ in: a line of its own, append-only, taken back by a key."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from hallulab.scenarios.datasets.annotations import read_annotations
from hallulab.scenarios.errors import UsageError
from hallulab.scenarios.transcript import Span
from hallulab.simulator.annotate.desk import Desk
from hallulab.simulator.records.folder import RunFolder
from tests.builders import conversation, scored

NOW = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)
REPLY = "It is Rs 500 in 3 days."
CHAT = conversation("c", [REPLY, "Yes."])
FEE = Span(start=6, end=12, text="Rs 500", severity=4)
VERDICTS = [scored("c", 0).model_copy(update={"spans": (FEE,)}), scored("c", 1)]
RIGHT = {"kind": "right", "detector": "d", "start": 6, "end": 12, "text": "Rs 500", "severity": 4}
DAYS = {"kind": "missed", "start": 16, "end": 22, "text": "3 days", "severity": 2, "reason": "A week."}
TURN = ("c", 0)
ASHA, BEN = "person:Asha", "person:Ben"


@pytest.fixture
def run(tmp_path: Path) -> RunFolder:
    """A run whose turn one annotator calls hallucinated, and another clean."""
    folder = RunFolder(tmp_path)
    sit(folder, ASHA).press(TURN, RIGHT)
    sit(folder, BEN).press(TURN, {"kind": "clean"})
    return folder


def sit(run: RunFolder, annotator: str) -> Desk:
    chats = {"c": (CHAT, VERDICTS)}
    return Desk(run, chats.get, (annotator, "g"), lambda: NOW)


def read_decisions(run: RunFolder) -> list[tuple[str, tuple[str, ...], list[tuple[str, int]]]]:
    return [
        (line.annotator, line.adjudicates, [(span.quote, span.severity) for span in line.spans])
        for _, line in read_annotations(run.annotations)
        if line.adjudicates
    ]


def take(name: str) -> dict[str, Any]:
    return {"kind": "take", "takes": name}


def test_the_labels_of_one_annotator_are_taken_into_a_line_of_its_own(run: RunFolder) -> None:
    before = run.annotations.read_text()
    sit(run, "person:Cora").press(TURN, take(ASHA), adjudicating=True)
    after = run.annotations.read_text()
    assert after.startswith(before)
    assert json.loads(after[len(before) :]) == {
        "conversation": "c",
        "turn": 0,
        "key": "c-0",
        "spans": [{"quote": "Rs 500", "severity": 4, "reason": ""}],
        "claims": True,
        "annotator": "person:Cora",
        "guideline": "g",
        "draw": 1,
        "stratum": 0,
        "time": "2026-01-02T03:04:05Z",
        "adjudicates": [ASHA, BEN],
    }


def test_one_of_the_annotators_may_settle_and_keeps_the_own_label(run: RunFolder) -> None:
    sit(run, BEN).press(TURN, take(ASHA), adjudicating=True)
    assert read_decisions(run) == [(BEN, (ASHA, BEN), [("Rs 500", 4)])]
    assert sit(run, BEN).read_lines()[TURN].spans == ()
    assert list(sit(run, BEN).read_labels(TURN)) == [ASHA, BEN]


def test_words_may_be_added_to_labels_that_were_taken(run: RunFolder) -> None:
    desk = sit(run, BEN)
    desk.press(TURN, take(ASHA), adjudicating=True)
    desk.press(TURN, DAYS, adjudicating=True)
    assert read_decisions(run) == [(BEN, (ASHA, BEN), [("Rs 500", 4), ("3 days", 2)])]


def test_a_turn_that_is_marked_anew_is_settled_when_that_is_said(run: RunFolder) -> None:
    desk = sit(run, BEN)
    desk.press(TURN, DAYS, adjudicating=True)
    assert read_decisions(run) == []
    desk.press(TURN, {"kind": "done"}, adjudicating=True)
    assert read_decisions(run) == [(BEN, (ASHA, BEN), [("3 days", 2)])]


def test_undo_takes_decisions_and_labels_back_in_their_order(run: RunFolder) -> None:
    desk = sit(run, BEN)
    desk.press(TURN, take(ASHA), adjudicating=True)
    desk.press(TURN, take(BEN), adjudicating=True)
    before = run.annotations.read_text()
    desk.undo()
    assert read_decisions(run) == [(BEN, (ASHA, BEN), [("Rs 500", 4)])]
    desk.undo()
    assert read_decisions(run) == []
    assert BEN in desk.read_labels(TURN)
    desk.undo()
    assert BEN not in desk.read_labels(TURN)
    assert run.annotations.read_text().startswith(before)


def test_a_decision_that_was_taken_back_may_be_made_by_another(run: RunFolder) -> None:
    desk = sit(run, BEN)
    desk.press(TURN, take(ASHA), adjudicating=True)
    with pytest.raises(UsageError, match=r"^person:Ben settled this turn\. Only they can take it back"):
        sit(run, ASHA).press(TURN, take(BEN), adjudicating=True)
    desk.undo()
    sit(run, ASHA).press(TURN, {"kind": "clean"}, adjudicating=True)
    assert read_decisions(run) == [(ASHA, (ASHA, BEN), [])]


def test_a_decision_takes_in_an_annotator_who_came_later(run: RunFolder) -> None:
    desk = sit(run, BEN)
    desk.press(TURN, take(ASHA), adjudicating=True)
    sit(run, "person:Cora").press(TURN, {"kind": "clean"})
    desk.press(TURN, take(ASHA), adjudicating=True)
    assert read_decisions(run) == [(BEN, (ASHA, BEN, "person:Cora"), [("Rs 500", 4)])]


@pytest.mark.parametrize(
    ("place", "said", "reason"),
    [
        (("c", 1), {"kind": "clean"}, "Fewer than two annotators"),
        (TURN, take("person:Nobody"), "person:Nobody did not label this turn"),
        (("c", 7), {"kind": "clean"}, "Fewer than two annotators"),
    ],
)
def test_what_cannot_be_settled_is_refused(
    run: RunFolder, place: tuple[str, int], said: dict[str, Any], reason: str
) -> None:
    before = run.marks.read_text()
    with pytest.raises(UsageError, match=reason):
        sit(run, BEN).press(place, said, adjudicating=True)
    assert run.marks.read_text() == before


def test_a_kill_between_mark_and_line_loses_nothing(run: RunFolder) -> None:
    desk = sit(run, BEN)
    whole = run.annotations.read_text()
    desk.press(TURN, take(ASHA), adjudicating=True)
    run.annotations.write_text(whole)  # the line was not written
    desk.press(("c", 1), {"kind": "clean"})
    assert read_decisions(run) == [(BEN, (ASHA, BEN), [("Rs 500", 4)])]
