"""Marks become lines of annotations.jsonl, key by key."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from pathlib import Path
from threading import Thread
from typing import Any

import pytest

from hallulab.scenarios.datasets.annotations import TurnPlace, find_replies, read_annotations
from hallulab.scenarios.errors import UsageError
from hallulab.scenarios.transcript import Conversation, Span, Verdict
from hallulab.simulator.annotate import sheet
from hallulab.simulator.annotate.desk import Desk, find_guideline
from hallulab.simulator.records.folder import RunFolder
from tests.builders import conversation, scored

NOW = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)
CHAT = conversation("c", ["It is Rs 500 in 3 days.", "Yes."])
FEE = Span(start=6, end=12, text="Rs 500")
GHOST = Span(start=None, end=None, text="10 years")
VERDICTS = [scored("c", 0).model_copy(update={"spans": (FEE, GHOST)}), scored("c", 1)]
RIGHT = {"kind": "right", "detector": "d", "start": 6, "end": 12, "text": "Rs 500", "severity": 4}
NO_GHOST = {"kind": "wrong", "detector": "d", "text": "10 years"}
LINE = {"conversation": "c", "turn": 0, "key": "c-0", "claims": True, "draw": 1, "stratum": 0}


@pytest.fixture
def run(tmp_path: Path) -> RunFolder:
    return RunFolder(tmp_path)


def sit(run: RunFolder, annotator: str = "person") -> Desk:
    chats = {"c": (CHAT, VERDICTS)}
    return Desk(run, chats.get, (annotator, "g"), lambda: NOW)


def lines(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []


def signed(**fields: Any) -> dict[str, Any]:
    return {**LINE, "annotator": "person", "guideline": "g", "time": "2026-01-02T03:04:05Z", **fields}


def test_a_line_is_written_when_the_turn_is_whole(run: RunFolder) -> None:
    desk = sit(run)
    desk.press(("c", 0), RIGHT)
    assert lines(run.annotations) == []
    desk.press(("c", 0), NO_GHOST)
    spans = [{"quote": "Rs 500", "severity": 4, "reason": ""}]
    assert lines(run.annotations) == [signed(spans=spans)]
    assert lines(run.marks) == [
        {"conversation": "c", "turn": 0, **RIGHT, "guideline": "g", "time": "2026-01-02T03:04:05Z"},
        {"conversation": "c", "turn": 0, **NO_GHOST, "guideline": "g", "time": "2026-01-02T03:04:05Z"},
    ]


def test_a_change_takes_the_line_back_and_adds_another(run: RunFolder) -> None:
    desk = sit(run)
    desk.press(("c", 1), {"kind": "clean"})
    desk.press(("c", 1), {"kind": "unknown"})
    clean = signed(turn=1, key="c-1", spans=[])
    assert lines(run.annotations) == [clean, {**clean, "withdrawn": True}, {**clean, "unknown": True}]
    assert [line.unknown for _, line in read_annotations(run.annotations)] == [True]


def test_undo_takes_back_key_by_key(run: RunFolder) -> None:
    desk = sit(run)
    desk.press(("c", 1), {"kind": "clean"})
    desk.press(("c", 1), {"kind": "unknown"})
    assert [mark.kind if mark else None for mark in (desk.undo(), desk.undo(), desk.undo())] == [
        "unknown",
        "clean",
        None,
    ]
    assert read_annotations(run.annotations) == []
    assert [line.get("withdrawn", False) for line in lines(run.annotations)] == [False, True] * 3
    assert len(lines(run.marks)) == 4


def test_a_key_that_changes_nothing_writes_no_line(run: RunFolder) -> None:
    desk = sit(run)
    desk.press(("c", 1), {"kind": "clean"})
    desk.press(("c", 1), {"kind": "done"})
    assert len(lines(run.annotations)) == 1


def test_a_line_of_a_sheet_stays_while_marks_make_no_whole_turn(run: RunFolder) -> None:
    before = json.dumps(signed(spans=[])) + "\n"
    run.annotations.write_text(before)
    desk = sit(run)
    desk.press(("c", 0), RIGHT)
    assert run.annotations.read_text() == before
    desk.press(("c", 0), {"kind": "done"})
    assert [len(line.spans) for _, line in read_annotations(run.annotations)] == [1]


def test_what_a_kill_left_unwritten_comes_with_the_next_key(run: RunFolder) -> None:
    desk = sit(run)
    desk.press(("c", 0), RIGHT)
    desk.press(("c", 0), {"kind": "done"})
    whole = run.annotations.read_text()
    run.annotations.write_text("")  # killed between the mark and the line
    desk.press(("c", 1), {"kind": "clean"})
    assert run.annotations.read_text().startswith(whole)
    assert [line.turn for _, line in read_annotations(run.annotations)] == [0, 1]


def test_a_key_is_taken_although_the_last_marks_conversation_is_gone(run: RunFolder) -> None:
    chats = {"c": (CHAT, VERDICTS), "old": (conversation("old", ["Yes."]), [])}
    desk = Desk(run, chats.get, ("person", "g"), lambda: NOW)
    desk.press(("old", 0), {"kind": "clean"})
    del chats["old"]
    desk.press(("c", 1), {"kind": "clean"})
    assert [line.place for _, line in read_annotations(run.annotations)] == [("old", 0), ("c", 1)]


def test_undo_of_a_mark_whose_conversation_is_gone_leaves_its_line(run: RunFolder) -> None:
    chats: dict[str, tuple[Conversation, list[Verdict]]] = {"old": (conversation("old", ["Yes."]), [])}
    desk = Desk(run, chats.get, ("person", "g"), lambda: NOW)
    desk.press(("old", 0), {"kind": "clean"})
    chats.clear()
    undone = desk.undo()
    assert undone is not None
    assert (undone.kind, [line["kind"] for line in lines(run.marks)]) == ("clean", ["clean", "undo"])
    assert [line.place for _, line in read_annotations(run.annotations)] == [("old", 0)]


def test_a_torn_mark_is_lost_alone(run: RunFolder, caplog: pytest.LogCaptureFixture) -> None:
    desk = sit(run)
    desk.press(("c", 0), RIGHT)
    whole = run.marks.read_text()
    run.marks.write_text(whole + whole[:40])
    desk.press(("c", 0), {"kind": "done"})
    assert "unfinished" in caplog.text
    assert [line["kind"] for line in lines(run.marks)] == ["right", "done"]


PRESSING = """
from pathlib import Path
from hallulab.simulator.annotate.desk import Desk
from hallulab.simulator.records.folder import RunFolder
from tests.simulator.annotate.test_desk import CHAT, VERDICTS
desk = Desk(RunFolder(Path({folder!r})), {{"c": (CHAT, VERDICTS)}}.get, ("person", "g"))
while True:
    for kind in ("clean", "unknown"):
        desk.press(("c", 1), {{"kind": kind}})
        print(kind, flush=True)
"""


@pytest.mark.slow
@pytest.mark.parametrize("keys", [1, 4, 9, 20])
def test_a_killed_process_loses_the_key_under_way_at_most(run: RunFolder, keys: int) -> None:
    command = [sys.executable, "-c", PRESSING.format(folder=str(run.path))]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        for _ in range(keys):
            process.stdout.readline()
        process.kill()
        saved = keys + len(process.stdout.readlines())
    assert saved <= len(lines(run.marks)) <= saved + 1
    sit(run).press(("c", 0), {"kind": "clean"})
    pressed = ["clean", "unknown"][(len(lines(run.marks)) - 2) % 2]
    found = {line.turn: line.unknown for _, line in read_annotations(run.annotations)}
    assert found == {0: False, 1: pressed == "unknown"}


def test_threads_take_turns(run: RunFolder) -> None:
    with ThreadPoolExecutor(8) as pool:
        for _ in range(40):
            pool.submit(sit(run).press, ("c", 1), {"kind": "clean"})
    assert len(lines(run.marks)) == 40
    assert len(lines(run.annotations)) == 1


def test_annotators_have_lines_of_their_own(run: RunFolder) -> None:
    for name in ("person:asha", "person:ben"):
        sit(run, name).press(("c", 1), {"kind": "clean"})
    sit(run, "person:asha").undo()
    assert [line.annotator for _, line in read_annotations(run.annotations)] == ["person:ben"]


SHEET = """\
annotator: person
guideline: g2
turns:
- {conversation: c, turn: 1, key: k1, draw: 2, stratum: 1, propensity: 0.25, spans: }
- {conversation: c, turn: 0, key: k0, draw: 2, stratum: 0, propensity: 0.5, spans: }
"""


def test_drawn_turns_are_the_queue_and_their_lines_have_the_propensity(run: RunFolder) -> None:
    (run.path / "to-annotate-1.yaml").write_text(SHEET)
    assert find_guideline(run) == "g2"
    desk = sit(run)
    assert [turn.place for turn in desk.list_next()] == [("c", 1), ("c", 0)]
    desk.press(("c", 1), {"kind": "clean"})
    [line] = lines(run.annotations)
    assert line == signed(turn=1, key="k1", spans=[], draw=2, stratum=1, propensity=0.25)
    assert [turn.place for turn in desk.list_next()] == [("c", 0)]
    assert [turn.place for turn in sit(run, "person:ben").list_next()] == [("c", 1), ("c", 0)]
    assert find_guideline(run) == "g"


def test_drawn_turns_of_a_conversation_that_is_gone_are_not_waited_for(run: RunFolder) -> None:
    (run.path / "to-annotate-1.yaml").write_text(
        SHEET.replace("conversation: c, turn: 1", "conversation: old, turn: 1")
    )
    assert [turn.place for turn in sit(run).list_next()] == [("c", 0)]


def test_drawn_turns_stay_in_the_queue_while_it_is_not_known_whether_they_count(run: RunFolder) -> None:
    def read_chat(chat: str) -> None:
        raise UsageError("The journals of this run are still being read.")

    (run.path / "to-annotate-1.yaml").write_text(SHEET)
    assert len(Desk(run, read_chat, ("person", "g")).list_next()) == 2


def test_a_key_waits_until_a_sheet_is_added(run: RunFolder, monkeypatch: pytest.MonkeyPatch) -> None:
    run.conversations.write_text(f"{CHAT.model_dump_json()}\n")
    path = run.path / "to-annotate-1.yaml"
    path.write_text(SHEET.replace("g2", "g").replace("spans: }", "spans: []}"))
    pressing = Thread(target=lambda: sit(run).press(("c", 1), {"kind": "clean"}))

    def press_meanwhile(wanted: Iterable[TurnPlace], chats: Iterable[Conversation]) -> dict[TurnPlace, str]:
        pressing.start()
        pressing.join(0.2)
        return find_replies(wanted, chats)

    monkeypatch.setattr(sheet, "find_replies", press_meanwhile)
    assert sheet.add_sheet(run, path) == sheet.Added(added=2, known=0, empty=0)
    pressing.join()
    assert [line.place for _, line in read_annotations(run.annotations)] == [("c", 1), ("c", 0)]


@pytest.mark.parametrize(
    ("place", "said", "reason"),
    [
        (("c", 2), {"kind": "clean"}, "no turn 2"),
        (("x", 0), {"kind": "clean"}, "no turn 0 of conversation x"),
        (("c", 1), RIGHT, "does not flag that"),
        (("c", 0), {"kind": "right", "detector": "d", "start": 0, "end": 2, "text": "It"}, "does not flag"),
        (("c", 0), {"kind": "missed", "start": 0, "end": 2, "text": "no"}, "do not stand"),
        (("c", 0), {"kind": "missed", "start": 0, "end": 0, "text": ""}, "do not stand"),
    ],
)
def test_what_the_run_does_not_have_is_refused(
    run: RunFolder, place: tuple[str, int], said: dict[str, Any], reason: str
) -> None:
    with pytest.raises(UsageError, match=reason):
        sit(run).press(place, said)
    assert lines(run.marks) == lines(run.annotations) == []


@pytest.mark.parametrize("name", ["annotations.jsonl", "annotation-marks.jsonl"])
def test_nothing_is_written_through_a_link_that_leads_out(tmp_path: Path, name: str) -> None:
    outside = tmp_path / "outside.jsonl"
    outside.write_text("")
    run = RunFolder(tmp_path / "run")
    run.path.mkdir()
    (run.path / name).symlink_to(outside)
    with pytest.raises(UsageError, match="leads out of the run folder"):
        sit(run).press(("c", 1), {"kind": "clean"})
    assert outside.read_text() == ""
    assert [path.name for path in run.path.iterdir()] == [name]
