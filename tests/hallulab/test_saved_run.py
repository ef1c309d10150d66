"""A run folder as frames: their columns, their cells, and what is said of damage."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pandas
import pytest

from hallulab import OperationalError, Run, UsageError
from hallulab.results import SPANS, TURNS, VERDICTS
from hallulab.scenarios.files.json_text import LineWriter
from hallulab.scenarios.transcript import Conversation, Passage, Turn, Verdict
from hallulab.simulator.report.frames import FrameColumn
from hallulab.simulator.report.write import write_reports
from tests.builders import call, conversation, scored, unscored
from tests.kit.run_folders import write_run
from tests.places import ROOT
from tests.simulator.cli.test_commands import saved_run

FRAMES = {"turns": TURNS, "verdicts": VERDICTS, "spans": SPANS}
every_frame = pytest.mark.parametrize("name", FRAMES)


def run_of(folder: Path, conversations: Sequence[Conversation], verdicts: Sequence[Verdict] = ()) -> Run:
    """What is opened of a folder with these journals and no experiment.json."""
    return Run(write_run(folder, conversations, verdicts).path)


def cells(frame: pandas.DataFrame, *columns: str) -> list[tuple[Any, ...]]:
    """Those columns as rows; None for what is missing."""
    values = frame[list(columns)].astype(object)
    return list(values.where(values.notna(), None).itertuples(index=False, name=None))


def dtypes(frame: pandas.DataFrame) -> list[tuple[str, str]]:
    return [(str(name), str(dtype)) for name, dtype in frame.dtypes.items()]


def declared(columns: Sequence[FrameColumn]) -> list[tuple[str, str]]:
    return [(column.name, column.dtype) for column in columns]


@every_frame
def test_columns_are_those_declared(tmp_path: Path, name: str) -> None:
    run = Run(saved_run(tmp_path / "run").path)
    frame = getattr(run, name)()
    assert len(frame) == 1
    assert dtypes(frame) == declared(FRAMES[name])


@every_frame
def test_empty_runs_have_the_same_columns(tmp_path: Path, name: str) -> None:
    frame = getattr(run_of(tmp_path, []), name)()
    assert len(frame) == 0
    assert dtypes(frame) == declared(FRAMES[name])


@every_frame
def test_the_docs_show_the_columns(name: str) -> None:
    text = (ROOT / "docs" / "python.md").read_text(encoding="utf-8")
    first = text.split("\nEvery frame begins with:\n")[1].split("\n#")[0]
    section = text.split(f"\n### `run.{name}()`\n")[1].split("\n#")[0]
    columns = re.findall(r"^- `(\w+)` \((\w+)\): (.*)$", first + section, re.MULTILINE)
    assert columns == [tuple(column)[:3] for column in FRAMES[name]]


def test_a_turn_is_a_row(tmp_path: Path) -> None:
    turn = Turn(
        index=0,
        user="What is the fee?",
        act="goes-on",
        query="library fee",
        passages=(
            Passage(id="fees#0", document="fees", text="It is Rs 200."),
            Passage(id="rules#3", document="rules", text="No food."),
        ),
        reply="Rs 500.",
        calls=(call("user.message"), call("chatbot.generate"), call("chatbot.edit", prompt=None)),
    )
    chat = conversation("c", [], chatbot="mine", persona="asha", seed=7).model_copy(
        update={"turns": (turn,), "stop_reason": "gave_up"}
    )
    row = run_of(tmp_path, [chat]).turns().iloc[0].to_dict()
    assert row == {
        "conversation": "c",
        "persona": "asha",
        "chatbot": "mine",
        "seed": 7,
        "turn": 0,
        "depth": 0,
        "scenario": "s",
        "model": "m",
        "manner": None,
        "user_model": None,
        "pressure": None,
        "user": "What is the fee?",
        "act": "goes-on",
        "query": "library fee",
        "reply": "Rs 500.",
        "passages": ["It is Rs 200.", "No food."],
        "documents": ["fees", "rules"],
        "calls": 2,
        "prompt_tokens": 10,
        "completion_tokens": 4,
        "seconds": 1.0,
        "stop_reason": "gave_up",
    }


def test_what_was_not_judged_is_missing_and_not_clean(tmp_path: Path) -> None:
    nowhere = scored("c", 2, None).model_copy(update={"score": 1.0, "flagged": True})
    verdicts = [scored("c", 0, []), scored("c", 1, [(0, 2), None]), nowhere, unscored("c", 3)]
    found = run_of(tmp_path, [conversation("c", ["A.", "B.", "C.", "D."])], verdicts).verdicts()
    assert cells(found, "turn", "outcome", "score", "flagged", "spans", "error") == [
        (0, "scored", 0.0, False, 0, None),
        (1, "scored", 1.0, True, 2, None),
        (2, "scored", 1.0, True, None, None),
        (3, "failed", None, None, None, "because"),
    ]
    assert found["flagged"].mean() == pytest.approx(2 / 3)


def test_a_hallucination_is_a_row(tmp_path: Path) -> None:
    verdicts = [scored("c", 0, [(0, 2), None]), unscored("c", 1)]
    found = run_of(tmp_path, [conversation("c", ["Ab.", "B."])], verdicts).spans()
    assert cells(found, "conversation", "turn", "detector", "start", "end", "text", "severity") == [
        ("c", 0, "d", 0, 2, "x", None),
        ("c", 0, "d", None, None, "x", None),
    ]


def test_rows_are_ordered_by_persona_seed_chatbot_turn_and_detector(tmp_path: Path) -> None:
    chats = [
        conversation("1", ["A.", "B."], chatbot="z", persona="asha", seed=1),
        conversation("2", ["A."], chatbot="a", persona="asha", seed=1),
        conversation("3", ["A."], chatbot="z", persona="asha", seed=0),
        conversation("4", ["A."], chatbot="a", persona="aron", seed=5),
    ]
    verdicts = [scored("2", 0, detector="e"), scored("2", 0, detector="d"), scored("4", 0)]
    run = run_of(tmp_path, chats, verdicts)
    assert cells(run.turns(), "conversation", "turn") == [("4", 0), ("3", 0), ("2", 0), ("1", 0), ("1", 1)]
    assert cells(run.verdicts(), "conversation", "detector") == [("4", "d"), ("2", "d"), ("2", "e")]


def test_verdicts_of_an_older_version_do_not_count(tmp_path: Path) -> None:
    folder = saved_run(tmp_path / "run")
    with LineWriter(folder.verdicts) as verdicts:
        older = scored("c", 0, detector="metarag").model_copy(update={"version": "0"})
        verdicts.append(older.model_dump_json())
    assert cells(Run(folder.path).verdicts(), "detector", "version") == [("metarag", "1")]


def test_verdicts_on_an_earlier_try_do_not_count(tmp_path: Path) -> None:
    failed = conversation("c", ["A."]).model_copy(update={"stop_reason": "error", "error": "oops"})
    again = conversation("c-try2", ["B."])
    run = run_of(tmp_path, [failed, again], [scored("c", 0), scored("c-try2", 0)])
    assert cells(run.turns(), "conversation") == cells(run.verdicts(), "conversation") == [("c-try2",)]


def test_a_conversation_without_a_reply_is_among_the_conversations(tmp_path: Path) -> None:
    failed = conversation("c", []).model_copy(update={"stop_reason": "error", "error": "oops"})
    run = run_of(tmp_path, [failed])
    assert run.conversations == (failed,)
    assert len(run.turns()) == 0


def test_the_report_is_that_of_the_command_and_nothing_is_written(tmp_path: Path) -> None:
    folder = saved_run(tmp_path / "run")
    found = Run(str(folder.path)).report()
    assert not folder.report.exists()
    assert not folder.page.exists()
    assert found == write_reports(folder)


def test_an_empty_run_has_a_report(tmp_path: Path) -> None:
    assert run_of(tmp_path, []).report().rows == ()


def test_it_says_which_folder_it_is_and_how_much_was_judged(tmp_path: Path) -> None:
    verdicts = [
        scored("c", 0, []),
        scored("c", 1, [(0, 2)]),
        unscored("c", 2),
        scored("c", 0, [], detector="e\n"),
    ]
    run = run_of(tmp_path, [conversation("c", ["A.", "B.", "C."])], verdicts)
    sizes = "1 conversation, 3 replies"
    assert repr(run) == f"<Run '{tmp_path}': {sizes}; d scored 2 of 3, flagged 1; e scored 1 of 3, flagged 0>"
    assert run.path == tmp_path


def test_a_run_that_no_detector_has_judged_says_so(tmp_path: Path) -> None:
    run = run_of(tmp_path, [conversation("c", ["A."])])
    assert repr(run) == f"<Run '{tmp_path}': 1 conversation, 1 reply, not judged>"


def test_a_notebook_shows_sizes_sentences_and_coverage(tmp_path: Path) -> None:
    verdicts = [scored("c", 0, [(0, 2)]), unscored("c", 1)]
    shown = run_of(tmp_path, [conversation("c", ["A.", "B."])], verdicts)._repr_html_()
    assert f"<p>{tmp_path}: 1 conversation, 2 replies; d scored 1 of 2, flagged 1</p>" in shown
    assert "<strong>Detector d failed on 1 of 2 replies (50%). Reason: because.</strong>" in shown
    cells = re.findall(r"<t[hd][^>]*>([^<]*)</t[hd]>", shown.partition("<tbody>")[2])
    assert cells == ["vanilla", "d", "1.00", "100", "50", "1"]


def test_the_page_is_that_of_the_command(tmp_path: Path) -> None:
    folder = saved_run(tmp_path / "run")
    run = Run(folder.path)
    page = run.to_html()
    assert run.to_html(tmp_path / "page.html") is None
    assert not folder.page.exists()
    write_reports(folder)
    assert page == (tmp_path / "page.html").read_text() == folder.page.read_text()


def test_a_page_of_many_conversations_is_left_to_the_command(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("hallulab.simulator.report.write.MOST", 1)
    run = run_of(tmp_path / "a run", [conversation("a", ["A."]), conversation("b", ["B."])])
    with pytest.raises(UsageError) as refused:
        run.to_html()
    assert str(refused.value) == (
        f"{tmp_path}/a run has more than 1 conversations, which do not fit one page. "
        f"Write it with several: hallulab report '{tmp_path}/a run'"
    )


def test_a_page_that_cannot_be_written_is_one_sentence(tmp_path: Path) -> None:
    run = Run(saved_run(tmp_path / "run").path)
    with pytest.raises(OperationalError) as caught:
        run.to_html(tmp_path)
    assert str(caught.value) == f"cannot write {tmp_path}: Is a directory."


def test_another_folder_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UsageError) as caught:
        Run(tmp_path)
    assert str(caught.value).startswith(f"{tmp_path} is no run folder: it has no conversations.jsonl.")


def test_damage_is_one_sentence_with_file_and_line(tmp_path: Path) -> None:
    folder = saved_run(tmp_path / "run")
    folder.verdicts.write_text('{"conversation": "c", "turn": "\\ud800"}\n')
    with pytest.raises(UsageError) as caught:
        Run(folder.path)
    assert str(caught.value).startswith(f"{folder.verdicts}, line 1: ")
    assert "\n" not in str(caught.value)


def test_a_damaged_experiment_is_one_sentence(tmp_path: Path) -> None:
    folder = saved_run(tmp_path / "run")
    folder.experiment.write_text("[]")
    with pytest.raises(UsageError) as caught:
        Run(folder.path)
    assert str(caught.value) == f"{folder.experiment}: not an object. Restore it or use --fresh."
