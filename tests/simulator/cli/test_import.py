"""`hallulab import`: chats become a run folder on which the other commands work."""

from __future__ import annotations

import csv
import json
import re
import shutil
import tracemalloc
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from hallulab.scenarios.transcript import Conversation
from hallulab.simulator.records.folder import RunFolder
from hallulab.testing.tiny_pack import make_pack, words_for_vectors
from tests.simulator.command_line import CommandLine

Chats = Callable[..., Path]

WRONG = {"role": "assistant", "content": "The fee is 999 rupees.", "context": "The fee is 200 rupees."}
RIGHT = {"role": "assistant", "content": "The fee is 200 rupees.", "context": "The fee is 200 rupees."}
BARE = {"role": "assistant", "content": "Water boils at 100 degrees."}
ASKED = {"role": "user", "content": "What is the fee?"}


@pytest.fixture
def chats(tmp_path: Path) -> Chats:
    """Writes a file of chats; gives its path."""

    def write(*lines: Any) -> Path:
        path = tmp_path / "chats.jsonl"
        path.write_text("".join(f"{json.dumps({'messages': line})}\n" for line in lines))
        return path

    return write


TAKEN = "user ← messages (role user), reply ← messages (role assistant), passages ← messages (context)"


def held(folder: Path) -> list[Conversation]:
    return list(RunFolder(folder).read_conversations())


def test_imported_chats_are_judged_and_reported(hallulab: CommandLine, chats: Chats, tmp_path: Path) -> None:
    run = tmp_path / "mine"
    ended = hallulab("import", chats([ASKED, WRONG, ASKED, RIGHT], [ASKED, BARE]), "--out", run)
    assert (ended.code, ended.out) == (
        0, f"2 conversations with 3 turns imported as openai to {run}\n{TAKEN}\n"
    )  # fmt: skip
    assert "1 turn without evidence: detectors that need some abstain" in ended.err
    told = hallulab("detect", run, "--detectors", "lexical").out
    assert "1 of 3 replies has no evidence: a detector that needs some abstains" in told
    assert "lexical: of 3 turns 1 abstained; it counts neither in HPT nor in TokAcc." in told
    assert "simulated user" not in told
    report = json.loads((run / "report.json").read_text())
    assert report["imported"] is True
    cells = {(row["by"], row["value"]): row for row in report["concentration"]}
    assert (cells["all", "replies"]["replies"], cells["all", "replies"]["scored"]) == (3, 2)
    assert cells["document", "(none)"]["share"] is None
    with (run / "concentration.csv").open(newline="") as file:
        assert len([*csv.DictReader(file)]) == len(report["concentration"])
    sections = re.findall('<section id="(.+?)"', (run / "report.html").read_text())
    assert sections == ["results", "reader", "depth", "concentration", "answered", "user_messages"]
    assert hallulab("report", run).code == 0
    assert hallulab("export", run, "--detector", "lexical", "--out", tmp_path / "replies.jsonl").code == 0


def test_evidence_is_searched_in_documents(hallulab: CommandLine, chats: Chats, tmp_path: Path) -> None:
    pack, run = make_pack(tmp_path / "pack"), tmp_path / "mine"
    with words_for_vectors():
        path = chats([ASKED, RIGHT, ASKED, BARE])
        ended = hallulab("import", path, "--out", run, "--documents", pack / "documents", "--json")
        assert json.loads(ended.out) == {
            "format": "openai", "conversations": 1, "turns": 2, "with_evidence": 1, "searched": 1,
            "searched_by": "vectors",
            "without_reply": 0, "without_evidence": 0, "taken": {
                "user": ["messages (role user)"], "reply": ["messages (role assistant)"],
                "passages": ["messages (context)"],
            }, "unread": [], "notes": [], "skipped": [],
        }  # fmt: skip
        given, found = (turn.passages for turn in held(run)[0].turns)
        assert [passage.document for passage in given] == ["context"]
        assert [passage.document for passage in found] == ["kettle"]
        # The folder has a copy, and is judged by it.
        shutil.rmtree(pack)
        assert hallulab("detect", run, "--detectors", "lexical").code == 0
    assert [path.name for path in (run / "documents").iterdir()] == ["kettle.md"]


def test_documents_are_searched_by_words_where_no_vectors_can_be_made(
    hallulab: CommandLine, chats: Chats, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("hallulab.agents.retrieval.word_search.find_spec", lambda module: None)
    pack, run = make_pack(tmp_path / "pack"), tmp_path / "mine"
    path = chats([ASKED, RIGHT, ASKED, BARE], [ASKED, {**BARE, "content": "Zebras gallop."}])
    ended = hallulab("import", path, "--out", run, "--documents", pack / "documents")
    assert ended.err == (
        "the documents are searched by their words (BM25): search by vectors needs pip install "
        "'hallulab[local]'\n1 turn without passages: searched in the documents by words (BM25)\n"
        "1 turn without evidence: detectors that need some abstain. --documents DIR has it searched\n"
    )
    chat = next(one for one in held(run) if len(one.turns) == 2)
    assert [passage.document for passage in chat.turns[1].passages] == ["kettle"]
    assert hallulab("detect", run, "--detectors", "lexical").code == 0


def test_documents_that_a_folder_links_to_are_not_read(
    hallulab: CommandLine, chats: Chats, tmp_path: Path
) -> None:
    pack, run = make_pack(tmp_path / "pack"), tmp_path / "mine"
    with words_for_vectors():
        hallulab("import", chats([ASKED, BARE]), "--out", run, "--documents", pack / "documents")
        (run / "documents").rename(tmp_path / "elsewhere")
        (run / "documents").symlink_to(tmp_path / "elsewhere")
        ended = hallulab("detect", run, "--detectors", "lexical")
    assert (ended.code, "outside" in ended.err or "leads out" in ended.err) == (2, True), ended.err


def test_evidence_is_searched_in_a_pack(hallulab: CommandLine, chats: Chats, tmp_path: Path) -> None:
    pack, run = make_pack(tmp_path / "pack"), tmp_path / "mine"
    with words_for_vectors():
        assert hallulab("import", chats([ASKED, BARE]), "--out", run, "--scenario", pack).code == 0
        assert hallulab("detect", run, "--detectors", "lexical").code == 0
    saved = RunFolder(run).read_experiment()
    assert saved is not None
    assert saved.experiment.scenario == str(pack)


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        (["--format", "yaml"], "--format yaml: unknown. Give one of: adk, assistants,"),
        (["--documents", "x", "--scenario", "y"], "--documents and --scenario: give one of them."),
        (["--documents", "nowhere"], "nowhere: there is no such folder."),
        (["--format", "csv"], "line 1: no column user or question"),
    ],
)
def test_what_cannot_be_imported_is_said(
    hallulab: CommandLine, chats: Chats, tmp_path: Path, arguments: list[str], complaint: str
) -> None:
    run = tmp_path / "mine"
    ended = hallulab("import", chats([ASKED, BARE]), "--out", run, *arguments)
    assert (ended.code, run.exists()) == (2, False)
    assert complaint in ended.err


@pytest.mark.parametrize(
    ("text", "arguments", "complaint"),
    [
        ("", (), "chats.csv, line 1: the file is empty. Give a file of chats."),
        ("frage,antwort\nWann?,Um 7.\n", ("--format", "csv"), "among frage, antwort. Name the columns in a"),
    ],
)
def test_what_a_file_lacks_is_said(
    hallulab: CommandLine, tmp_path: Path, text: str, arguments: tuple[str, ...], complaint: str
) -> None:
    path = tmp_path / "chats.csv"
    path.write_text(text)
    ended = hallulab("import", path, "--out", tmp_path / "mine", *arguments)
    assert ended.code == 2
    assert complaint in ended.err


def test_a_bad_line_leaves_nothing_behind(hallulab: CommandLine, chats: Chats, tmp_path: Path) -> None:
    path = chats(*([ASKED, BARE] for _ in range(100)), [{"content": "x"}])
    ended = hallulab("import", path, "--out", tmp_path / "mine")
    flaw = "messages.0.role: is missing. Give `user`, `assistant`, `system` or `tool`."
    assert (ended.code, ended.err) == (2, f"error: {path}, line 101: {flaw}\n")
    assert [*tmp_path.iterdir()] == [path]


def test_two_conversations_of_one_name_are_refused(hallulab: CommandLine, tmp_path: Path) -> None:
    path = tmp_path / "chats.jsonl"
    path.write_text(f"{json.dumps({'id': 'x', 'messages': [ASKED, BARE]})}\n" * 2)
    ended = hallulab("import", path, "--out", tmp_path / "mine")
    assert ended.code == 2
    assert f"{path}, line 2: another conversation is called 'x', too." in ended.err


def test_no_run_is_put_among_the_documents(hallulab: CommandLine, chats: Chats, tmp_path: Path) -> None:
    documents = make_pack(tmp_path / "pack") / "documents"
    ended = hallulab("import", chats([ASKED, RIGHT]), "--out", documents / "run", "--documents", documents)
    assert (ended.code, ended.err) == (
        2,
        f"error: {documents / 'run'}: is in the folder of the documents. Give an --out outside of it.\n",
    )
    assert not (documents / "run").exists()


def test_nothing_is_mixed_with_an_import(hallulab: CommandLine, chats: Chats, tmp_path: Path) -> None:
    run, path = tmp_path / "mine", chats([ASKED, BARE])
    assert hallulab("import", path, "--out", run).code == 0
    again = hallulab("import", path, "--out", run)
    assert (again.code, "is there and not empty" in again.err) == (2, True)
    more = hallulab("run", "--no-judge", "--out", run, "--model", "m", "--base-url", "http://127.0.0.1:9/v1")
    assert (more.code, "holds another experiment" in more.err) == (2, True)


@pytest.mark.parametrize("form", ["jsonl", "json"])
def test_of_a_long_file_one_value_is_in_memory(hallulab: CommandLine, tmp_path: Path, form: str) -> None:
    def peak(count: int) -> int:
        path, run = tmp_path / f"chats.{form}", tmp_path / f"mine-{count}"
        line = json.dumps({"messages": [ASKED, {**BARE, "content": "word " * 1_000}]})
        path.write_text(f"[{','.join([line] * count)}]" if form == "json" else f"{line}\n" * count)
        tracemalloc.start()
        assert hallulab("import", path, "--out", run).code == 0
        found = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        return found

    peak(1)
    assert peak(3_000) < 1.3 * peak(300)
