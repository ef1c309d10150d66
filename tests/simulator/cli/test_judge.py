"""`hallulab judge FILE`: one command from saved chats to the page."""

from __future__ import annotations

import json
import re
import shlex
import socket
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from hallulab.scenarios.errors import OperationalError
from hallulab.simulator.engine.judging import WORTH
from hallulab.simulator.records.folder import RunFolder
from hallulab.testing.endpoint import MODEL, serve_stub
from tests.places import ROOT
from tests.simulator.command_line import CommandLine

ASKED = "What is the fee for a complaint?"
WRONG = "It is 500 euros."
RIGHT = "The fee is 200 rupees."
SAYS = "The fee for a complaint is 200 rupees."

RAGAS = [
    {"user_input": ASKED, "retrieved_contexts": [SAYS], "response": reply, "reference": "200"}
    for reply in (WRONG, RIGHT)
]
DEEPEVAL = [
    {"input": ASKED, "retrieval_context": [SAYS], "actual_output": reply, "expected_output": "200"}
    for reply in (WRONG, RIGHT)
]
OPENAI = [
    {
        "messages": [
            {"role": "user", "content": ASKED},
            {"role": "assistant", "content": reply, "context": SAYS},
        ]
    }
    for reply in (WRONG, RIGHT)
]


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An empty working directory."""
    monkeypatch.chdir(tmp_path)


def write_lines(rows: list[Any], name: str = "chats.jsonl") -> str:
    Path(name).write_text("".join(f"{json.dumps(row)}\n" for row in rows))
    return name


def find_runs() -> list[RunFolder]:
    return [RunFolder(path) for path in sorted(Path("runs").iterdir())]


def list_flags(run: RunFolder) -> list[tuple[str, bool | None]]:
    return sorted((one.detector, one.flagged) for one in run.read_journals().verdicts)


@pytest.mark.parametrize("rows", [RAGAS, DEEPEVAL, OPENAI], ids=["ragas", "deepeval", "openai"])
def test_chats_of_each_tool_are_judged(hallulab: CommandLine, rows: list[Any]) -> None:
    ended = hallulab("judge", write_lines(rows), "--detectors", "lexical")
    [run] = find_runs()
    assert ended.code == 0, ended.err
    assert re.fullmatch(r"chats-\d{4}-\d\d-\d\dT\d\d-\d\d-\d\d", run.path.name)
    assert list_flags(run) == [("lexical", False), ("lexical", True)]
    assert f"report: {run.page}\n" in ended.out
    assert WORTH not in " ".join(ended.out.split())


def test_twenty_chats_are_judged_in_one_step(hallulab: CommandLine, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: Any) -> None:
        raise AssertionError("a model is looked for")

    monkeypatch.setattr(socket.socket, "connect", refuse)
    write_lines([*RAGAS] * 10)
    [typed] = ["hallulab judge chats.jsonl"]
    ended = hallulab(*shlex.split(typed)[1:])
    [run] = find_runs()
    assert (ended.code, " ".join(ended.out.split()).endswith(WORTH)) == (0, True)
    assert max(map(len, ended.out.splitlines())) <= 110
    assert Counter(list_flags(run)) == {("combined", True): 10, ("combined", False): 10}
    assert "20 conversations with 20 turns imported as json-rows to runs/chats-" in ended.out
    assert run.page.is_file()
    assert "Answered and declined:" in ended.out


def test_the_page_shows_the_row_that_is_judged_and_the_finding(
    hallulab: CommandLine, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "110")
    page = (ROOT / "docs" / "own-chats.md").read_text(encoding="utf-8")
    [row] = re.findall(r'^    (\{"user_input".*)$', page, re.MULTILINE)
    ended = hallulab("judge", write_lines([json.loads(row)]))
    printed = "".join(f"{line.rstrip()}\n" for line in ended.out.splitlines())
    assert (ended.code, page.split("```\n")[1] in printed) == (0, True)


def test_the_worth_of_combined_is_that_of_the_docs() -> None:
    rows = [
        [cell.strip(" *").replace("**", "") for cell in line.strip("|").split("|")]
        for line in (ROOT / "docs" / "studies" / "trust.md").read_text().splitlines()
        if line.startswith(("| `combined`", "| `lexical` (floor)"))
    ]
    lexical, combined = ([row for row in rows if row[0].startswith(name)] for name in ("`lex", "`comb"))
    assert (combined[0][2], combined[1][2], lexical[1][2]) == ("0.458", "0.873 [0.79, 0.92]", "0.855")
    for number in ("is 0.458", "is 0.873 [0.79, 0.92]", "words 0.855", "216 replies", "38 replies"):
        assert number in WORTH


def test_a_model_that_is_named_has_the_detectors_of_detect(hallulab: CommandLine) -> None:
    bare = [{"question": ASKED, "answer": WRONG}]  # detectors of models abstain without evidence
    with serve_stub() as url:
        ended = hallulab("judge", write_lines(bare), "--base-url", url, "--model", MODEL, "--quiet")
    [run] = find_runs()
    assert (ended.code, WORTH in " ".join(ended.out.split())) == (0, False)
    assert {one.detector for one in run.read_journals().verdicts} == {"halludetect", "metarag"}


def test_documents_are_searched_by_words_without_vectors(
    hallulab: CommandLine, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("hallulab.agents.retrieval.word_search.find_spec", lambda module: None)
    Path("docs").mkdir()
    Path("docs", "fees.md").write_text(f"# Fees\n\n{SAYS}\n")
    rows = [{"question": ASKED, "answer": reply} for reply in (WRONG, RIGHT)]
    ended = hallulab("judge", write_lines(rows), "--documents", "docs", "--detectors", "lexical")
    [run] = find_runs()
    assert list_flags(run) == [("lexical", False), ("lexical", True)]
    assert "2 turns without passages: searched in the documents by words (BM25)" in ended.err


def test_with_json_only_json_is_on_standard_output(hallulab: CommandLine) -> None:
    ended = hallulab("judge", write_lines(RAGAS), "--json")
    assert [row["detector"] for row in json.loads(ended.out)["rows"]] == ["combined"]
    assert WORTH in ended.err


def test_a_second_call_makes_a_second_folder(hallulab: CommandLine) -> None:
    write_lines(RAGAS)
    for _ in range(2):
        assert hallulab("judge", "chats.jsonl", "--detectors", "lexical").code == 0
    first, second = find_runs()
    assert list_flags(first) == list_flags(second)


def test_a_folder_that_is_there_is_not_written_over(hallulab: CommandLine) -> None:
    write_lines(RAGAS)
    assert hallulab("judge", "chats.jsonl", "--out", "mine", "--detectors", "lexical").code == 0
    before = RunFolder(Path("mine")).page.read_bytes()
    said = "error: mine is there and not empty. Go on with it by `{}`, or give another --out.\n"
    ended = hallulab.code_and_error("judge", "chats.jsonl", "--out", "mine")
    assert ended == (2, said.format("hallulab detect mine --detectors combined"))
    assert RunFolder(Path("mine")).page.read_bytes() == before


def test_after_a_failure_a_command_goes_on(hallulab: CommandLine) -> None:
    model = ("--base-url", "http://127.0.0.1:9/v1", "--model", MODEL)
    ended = hallulab("judge", write_lines(RAGAS), "--out", "mine", "--detectors", "direct-judge", *model)
    assert ended.code == 1
    [command] = re.findall(r"^warning: the chats are imported\. Go on by: (.*)$", ended.err, re.MULTILINE)
    assert shlex.split(command) == [
        "hallulab", "detect", "mine", "--detectors", "direct-judge", "--model", MODEL, *model[:2]
    ]  # fmt: skip


def test_a_report_that_cannot_be_written_leaves_the_command_that_goes_on(
    hallulab: CommandLine, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object) -> None:
        raise OperationalError("no space left")

    monkeypatch.setattr("hallulab.simulator.report.write.write_reports", fail)
    ended = hallulab("judge", write_lines(RAGAS), "--out", "mine", "--detectors", "lexical")
    assert (ended.code, ended.err.splitlines()[-2:]) == (
        1,
        [
            "warning: the chats are imported. Go on by: hallulab detect mine --detectors lexical",
            "error: no space left",
        ],
    )


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (
            ["chats.jsonl", "--detectors", "halludetect"],
            "halludetect asks a model, and none is named. Give --base-url URL --model NAME, or --model NAME "
            "to have it served here; combined and lexical ask none.",
        ),
        (
            ["chats.jsonl", "--detectors", "lexicall"],
            "there is no detector 'lexicall' (did you mean `lexical`?); there are: ",
        ),
        (
            ["chats.jsonl", "--base-url", "http://127.0.0.1:9/v1"],
            "name the model that http://127.0.0.1:9/v1 serves",
        ),
        (["none.jsonl"], "none.jsonl: cannot be read (No such file or directory). Correct the path."),
        (["bad.jsonl"], "bad.jsonl, line 1: "),
        (["chats.jsonl", "--documents", "none"], "none: there is no such folder."),
        (["chats.jsonl", "--documents", "bad.jsonl"], "bad.jsonl: this is a file."),
        (["chats.jsonl", "--model", "gpt-17"], "there is no model 'gpt-17'. "),
        (["chats.jsonl", "--out", "notes"], "notes is there and not empty. Give another --out.\n"),
    ],
)
def test_a_mistake_is_one_sentence_before_anything_is_written(
    hallulab: CommandLine, arguments: list[str], said: str
) -> None:
    write_lines(RAGAS)
    Path("bad.jsonl").write_text("{'\n")
    Path("notes").mkdir()
    Path("notes/note.txt").write_text("x")
    code, error = hallulab.code_and_error("judge", *arguments)
    assert (code, error.count("\n"), error[: len(f"error: {said}")]) == (2, 1, f"error: {said}")
    assert not Path("runs").exists()


@pytest.mark.parametrize(
    ("terminal", "display", "opened"), [(True, ":0", 1), (True, "", 0), (False, ":0", 0)]
)
def test_the_page_is_opened_from_a_terminal_with_a_display(
    hallulab: CommandLine, monkeypatch: pytest.MonkeyPatch, terminal: bool, display: str, opened: int
) -> None:
    shown: list[str] = []
    monkeypatch.setattr("webbrowser.open", shown.append)
    monkeypatch.setattr("sys.stdin.isatty", lambda: terminal, raising=False)
    monkeypatch.setattr("sys.stdout.isatty", lambda: terminal, raising=False)
    monkeypatch.setenv("DISPLAY", display)
    monkeypatch.delenv("WAYLAND_DISPLAY", raising=False)
    assert hallulab("judge", write_lines(RAGAS), "--detectors", "lexical", "--out", "mine").code == 0
    assert shown == [Path("mine/report.html").absolute().as_uri()] * opened
