"""`hallulab make-data planted`: what it writes, what `bench` makes of it, what it refuses."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from hallulab.scenarios.datasets.rows import load_rows
from hallulab.simulator.records.folder import RunFolder
from tests.builders import conversation, scored
from tests.places import ROOT
from tests.simulator.command_line import CommandLine

RECORDING = ROOT / "tests" / "recordings" / "planted" / "fluent.jsonl.gz"
PLANT = ("make-data", "planted")
FEE = "The fee for a complaint is 200 rupees at the office."


def test_bench_measures_on_what_was_planted_into_a_pack(hallulab: CommandLine, tmp_path: Path) -> None:
    ended = hallulab(*PLANT, "consumer-grievance-india", "--out", tmp_path / "p", "--count", 28)
    assert (ended.code, ended.err) == (0, "")
    assert ended.out == f"28 errors with clean twins written to {tmp_path / 'p' / 'planted.jsonl'}\n"
    numbers = tmp_path / "numbers.json"
    page = tmp_path / "page.html"
    ended = hallulab(
        *("bench", tmp_path / "p", "--detectors", "evidence-chain-lr"), "--json", numbers, "--html", page
    )
    assert ended.code == 0
    assert "evidence-chain-lr was not trained here: this data is for measuring." in ended.out
    planted = json.loads(numbers.read_text())["planted"]
    every = {row["detector"]: row["pairs"] for row in planted if row["kind"] == row["turn"] == row["context"]}
    assert every == {"lexical": 28, "evidence-chain-lr": 28}
    assert '<section id="planted">' in page.read_text()


def test_clean_replies_of_a_run_are_planted_into_and_quotations_of_its_passages(
    hallulab: CommandLine, tmp_path: Path
) -> None:
    passages = [{"id": "d#0", "document": "d", "text": FEE}]
    said = "It is 200 rupees, as said before."
    turns = [{"index": n, "user": "And the fee?", "reply": said, "passages": passages} for n in range(2)]
    run = RunFolder(tmp_path / "run")
    run.path.mkdir()
    run.conversations.write_text(conversation("c", [], turns=turns).model_dump_json() + "\n")
    verdicts = [scored("c", 0, [(0, 3)]), scored("c", 1)]
    run.verdicts.write_text("".join(verdict.model_dump_json() + "\n" for verdict in verdicts))
    plant = (*PLANT, run.path, "--kinds", "number", "--count", 4, "--out")
    assert hallulab(*map(str, plant), tmp_path / "p").code == 0
    twins = [reply for reply in load_rows(tmp_path / "p" / "planted.jsonl") if not reply.label]
    assert {(reply.meta["source"], reply.reply) for reply in twins} == {
        ("c-1", said),
        *((source, FEE) for source in {reply.meta["source"] for reply in twins} - {"c-1"}),
    }
    assert {reply.meta["source"] for reply in twins} - {"c-1"} <= {"c-0 d#0", "c-1 d#0"}
    run.verdicts.write_text(verdicts[0].model_dump_json() + "\n")
    assert hallulab(*map(str, plant), tmp_path / "q").code == 0
    twins = [reply for reply in load_rows(tmp_path / "q" / "planted.jsonl") if not reply.label]
    assert {reply.reply for reply in twins} == {FEE}


def test_a_folder_of_documents_needs_no_pack(hallulab: CommandLine, tmp_path: Path) -> None:
    documents = tmp_path / "documents"
    documents.mkdir()
    (documents / "fees.txt").write_text(f"{FEE} It must be paid within 30 days of the notice.\n")
    (documents / "hours.md").write_text("# Hours\n\nThe office is open from 10 to 16 on working days.\n")
    out = tmp_path / "p"
    ended = hallulab(
        "make-data",
        "planted",
        documents,
        "--out",
        out,
        "--kinds",
        "number",
        "--count",
        "4",
        "--contexts",
        "1,2",
    )
    assert ended.code == 0
    replies = load_rows(out / "planted.jsonl")
    assert {reply.group for reply in replies} == {"fees", "hours"}
    (tmp_path / "empty").mkdir()
    ended = hallulab(*PLANT, tmp_path / "empty", "--out", tmp_path / "q")
    assert ended.code == 2
    assert "no documents in it" in ended.err


@pytest.mark.parametrize("given", [("--model", "m"), ("--workers", "2"), ("--ray", "local")])
def test_models_and_workers_are_refused_where_no_model_is_asked(
    hallulab: CommandLine, tmp_path: Path, given: tuple[str, str]
) -> None:
    ended = hallulab(*PLANT, "consumer-grievance-india", "--out", tmp_path / "p", *given)
    assert ended.code == 2
    assert "without --fluent, no model is asked" in ended.err


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (
            ("consumer-grievance-india", "--kinds", "typo"),
            "--kinds typo: there is no such kind. Give some of",
        ),
        (("consumer-grievance-india", "--turns", "1,x"), "--turns 1,x: give whole numbers from 0 to 50"),
        (("consumer-grievance-india", "--contexts", "0"), "--contexts 0: give whole numbers from 1 to 50"),
        (
            ("nowhere",),
            "nowhere: no such scenario pack, folder of documents, run folder or labelled file. The packs "
            "that come with hallulab: consumer-grievance-india, migration-labour-rights, nagar-seva, "
            "pregnancy-medication.",
        ),
    ],
)
def test_wrong_arguments_are_told(
    hallulab: CommandLine, tmp_path: Path, arguments: tuple[str, ...], said: str
) -> None:
    ended = hallulab(*PLANT, *arguments, "--out", tmp_path / "p")
    assert (ended.code, ended.out) == (2, "")
    assert said in ended.err
    assert not (tmp_path / "p").exists()


def test_a_model_writes_errors_as_when_it_was_recorded(hallulab: CommandLine, tmp_path: Path) -> None:
    """Of 24 sentences, a model of 1.5B made seven wrong; the others were dropped for a told reason."""
    sentences = ("consumer-grievance-india", "--count", "24", "--contexts", "1", "--turns", "0,2")
    model = ("--fluent", "--model", "qwen2.5-coder-1.5b", "--replay", RECORDING)
    ended = hallulab(*PLANT, *sentences, *model, "--out", tmp_path / "p")
    assert (ended.code, ended.out.split(" with ")[0]) == (0, "7 errors")
    assert sum(int(line.split()[1]) for line in ended.err.splitlines()) == 24 - 7
    assert "condition: 4 fewer, as the model wrote no error twice: no error of its kind\n" in ended.err
    replies = load_rows(tmp_path / "p" / "planted.jsonl")
    wrong = [
        (one.meta["kind"], one.reply[span.start : span.end]) for one in replies for span in one.spans or ()
    ]
    assert [(kind, words) for kind, words in wrong if len(words) < 40] == [
        ("contradiction", "not"),
        ("contradiction", "do not"),
        ("generality", "All employers"),
        ("contradiction", "not"),
    ]
    assert {one.meta["by"] for one in replies} == {"model"}
