"""The run folder: what counts in a journal, and what is said of a broken one."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from hallulab.scenarios.errors import OperationalError, UsageError
from hallulab.scenarios.files.atomic import write_atomically, write_together
from hallulab.scenarios.files.json_text import LineWriter
from hallulab.simulator.records.experiment import Component
from hallulab.simulator.records.folder import RunFolder
from hallulab.simulator.records.outputs import refuse_overwriting
from tests.builders import conversation


def test_a_later_try_counts_only_where_the_earlier_one_failed(folder: RunFolder) -> None:
    failed = conversation("a", []).model_copy(update={"stop_reason": "error", "error": "oops"})
    lines = [failed, conversation("a-try2", []), conversation("b", []), conversation("b-try2", [])]
    folder.conversations.write_text("".join(line.model_dump_json() + "\n" for line in lines))
    assert [line.id for line in folder.read_conversations()] == ["a-try2", "b", "b-try2"]


def test_a_torn_last_line_is_left_out(folder: RunFolder) -> None:
    whole = conversation("a", []).model_dump_json()
    folder.conversations.write_text(whole + "\n" + whole[:20])
    assert [line.id for line in folder.read_conversations()] == ["a"]


def test_opening_a_journal_removes_its_unfinished_last_line(folder: RunFolder) -> None:
    folder.conversations.write_text('whole\n{"torn": ')
    with LineWriter(folder.conversations) as journal:
        journal.append("next")
    assert folder.conversations.read_text() == "whole\nnext\n"


def test_a_line_of_the_wrong_shape_is_named(folder: RunFolder) -> None:
    folder.conversations.write_text('{"id": "a"}\n')
    with pytest.raises(UsageError) as caught:
        folder.read_conversations()
    assert (
        str(caught.value)
        == f"{folder.conversations}, line 1: field `scenario`: field required. Correct or delete the line."
    )


def test_a_folder_without_journal_is_no_run(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"is no run folder: it has no conversations\.jsonl"):
        RunFolder(tmp_path).require()
    run = RunFolder(tmp_path / "demo")
    run.path.mkdir()
    run.conversations.touch()
    with pytest.raises(UsageError, match=f"Give one in it, such as {run.path}\\.$"):
        RunFolder(tmp_path).require()


def test_clearing_leaves_other_files_alone(tmp_path: Path) -> None:
    folder = RunFolder(tmp_path)
    folder.report.write_text("{}")
    (tmp_path / "notes.txt").write_text("mine")
    folder.clear()
    assert [path.name for path in tmp_path.iterdir()] == ["notes.txt"]


def test_when_one_of_two_files_cannot_be_written_both_old_ones_stay(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    report, page = tmp_path / "report.json", tmp_path / "report.html"
    report.write_text("old")
    page.write_text("old")
    opened = Path.open

    def full(self: Path, mode: str = "r") -> object:
        if "report.html" in self.name:
            raise OSError(28, "No space left on device")
        return opened(self, mode)

    monkeypatch.setattr(Path, "open", full)
    with pytest.raises(OperationalError) as caught:
        write_together({report: "new", page: "new"})
    monkeypatch.undo()
    assert str(caught.value) == f"cannot write {page}: No space left on device."
    assert {file.name: file.read_text() for file in tmp_path.iterdir()} == {
        "report.json": "old",
        "report.html": "old",
    }


def test_a_folder_in_the_place_of_one_of_two_files_leaves_the_other_one(tmp_path: Path) -> None:
    report, page = tmp_path / "report.json", tmp_path / "report.html"
    report.write_text("old")
    page.mkdir()
    with pytest.raises(OperationalError) as caught:
        write_together({report: "new", page: "new"})
    assert str(caught.value) == f"cannot write {page}: Is a directory."
    assert sorted(path.name for path in tmp_path.iterdir()) == ["report.html", "report.json"]
    assert report.read_text() == "old"


def test_a_file_that_holds_its_text_already_is_left_alone(tmp_path: Path) -> None:
    report = tmp_path / "report.json"
    report.write_text("same")
    inode = report.stat().st_ino
    write_together({report: "same", tmp_path / "report.html": "new"})
    assert report.stat().st_ino == inode


def test_half_a_character_becomes_one_that_files_hold(tmp_path: Path) -> None:
    """As the name of a folder may have one, which is no UTF-8."""
    write_together({tmp_path / "report.json": "new", tmp_path / "report.html": "bad\udcff"})
    assert (tmp_path / "report.html").read_text(encoding="utf-8") == "bad\ufffd"


def test_a_link_in_the_place_of_the_file_beside_is_not_followed(tmp_path: Path) -> None:
    precious = tmp_path / "precious"
    precious.write_text("mine")
    (tmp_path / f".report.json.{os.getpid()}.part").symlink_to(precious)
    write_atomically(tmp_path / "report.json", "new")
    assert precious.read_text() == "mine"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["precious", "report.json"]


def test_a_folder_whose_parent_is_a_file_is_refused(tmp_path: Path) -> None:
    (tmp_path / "taken").write_text("a file")
    path = tmp_path / "taken" / "report.json"
    with pytest.raises(OperationalError) as caught:
        write_atomically(path, "new")
    assert str(caught.value) == f"cannot write {path}: File exists."


def test_what_a_link_leads_to_is_written(tmp_path: Path) -> None:
    target, link = tmp_path / "deep" / "target.json", tmp_path / "link.json"
    target.parent.mkdir()
    target.write_text("old")
    link.symlink_to(target)
    write_atomically(link, "new")
    assert (link.is_symlink(), target.read_text()) == (True, "new")


def test_a_link_that_leads_nowhere_yet_stays_one(tmp_path: Path) -> None:
    link = tmp_path / "link.json"
    link.symlink_to(tmp_path / "target.json")
    write_atomically(link, "new")
    assert (link.is_symlink(), (tmp_path / "target.json").read_text()) == (True, "new")


def test_a_pipe_is_written_into_and_not_replaced(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    reader = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)
    try:
        write_atomically(pipe, "new")
        assert (os.read(reader, 10), pipe.is_fifo()) == (b"new", True)
    finally:
        os.close(reader)


def test_a_file_that_is_read_is_not_written(tmp_path: Path) -> None:
    read, link, other = tmp_path / "in.jsonl", tmp_path / "link.jsonl", tmp_path / "out.jsonl"
    read.write_text("data")
    link.symlink_to(read)
    for output in (read, link, tmp_path / "deep" / ".." / "in.jsonl"):
        with pytest.raises(UsageError) as caught:
            refuse_overwriting(output, [other, read])
        assert str(caught.value) == (
            f"cannot write {output}: a file of the input would be lost. Give another file."
        )
    refuse_overwriting(other, [read])


def test_chatbots_saved_by_name_alone_are_read_as_components(folder: RunFolder) -> None:
    experiment = {"scenario": "s", "chatbots": ["vanilla"]}
    folder.experiment.write_text(json.dumps({"identity": {}, "detectors": {}, "experiment": experiment}))
    saved = folder.read_experiment()
    assert saved is not None
    assert saved.experiment.chatbots == (Component(name="vanilla", kind="vanilla"),)


def test_one_run_writes_to_a_folder_at_a_time(tmp_path: Path) -> None:
    with (
        RunFolder(tmp_path).claimed(),
        pytest.raises(
            UsageError, match=r"another run is writing to .*\. Wait until it ends, or use another folder"
        ),
        RunFolder(tmp_path).claimed(),
    ):
        raise AssertionError
    with RunFolder(tmp_path).claimed():
        pass


def test_a_folder_that_nothing_came_into_is_not_left(tmp_path: Path) -> None:
    with RunFolder(tmp_path / "a" / "run").claimed():
        assert (tmp_path / "a" / "run").is_dir()
    assert not (tmp_path / "a" / "run").exists()


def test_a_claimed_folder_keeps_what_came_into_it(tmp_path: Path) -> None:
    folder = RunFolder(tmp_path / "run")
    with folder.claimed():
        folder.conversations.write_text("")
    assert folder.conversations.exists()


def test_nothing_is_written_through_a_link_out_of_the_folder(tmp_path: Path) -> None:
    folder = RunFolder(tmp_path / "run")
    folder.path.mkdir()
    precious = tmp_path / "precious"
    precious.write_text("mine")
    folder.verdicts.symlink_to(precious)
    with pytest.raises(UsageError) as caught, folder.claimed():
        raise AssertionError
    assert str(caught.value) == (
        f"{folder.verdicts}: this link leads out of the run folder, to {precious}, which is not written to. "
        "Delete the link, or put the file in its place."
    )


def test_a_folder_that_is_reached_by_a_link_may_be_written(tmp_path: Path) -> None:
    (tmp_path / "run").mkdir()
    (tmp_path / "latest").symlink_to(tmp_path / "run")
    with RunFolder(tmp_path / "latest").claimed() as entered:
        assert entered is None
