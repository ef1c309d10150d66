"""`hallulab make-data`: planted errors, wrong answers to HotpotQA, the audit corpus; `bench` reads all."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from hallulab.scenarios.datasets.audit_corpus import generate
from hallulab.scenarios.datasets.rows import load_rows
from hallulab.testing.scripted import PROBES, ScriptedTransport, last_user, pool_through
from tests.builders import conversation, scored
from tests.kit.run_folders import write_run
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
    verdicts = [scored("c", 0, [(0, 3)]), scored("c", 1)]
    run = write_run(tmp_path / "run", [conversation("c", [], turns=turns)], verdicts)
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
        *PLANT, documents, "--out", out, "--kinds", "number", "--count", "4", "--contexts", "1,2"
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
            "that come with hallulab: banking-knowledge, consumer-grievance-india, migration-labour-rights, "
            "nagar-seva, pregnancy-medication.",
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


ENDPOINT = ("--base-url", "http://127.0.0.1:9/v1", "--model", "scripted")
REPLAY = ("--model", "scripted", "--replay")


def written(body: dict[str, Any]) -> str:
    """Another answer; of the question of the hat the right one, which is refused."""
    return "Red" if "colour" in last_user(body) else "Goalkeeper"


@pytest.fixture
def transport(monkeypatch: pytest.MonkeyPatch) -> ScriptedTransport:
    """What the models of commands answer."""
    made = ScriptedTransport(written)
    monkeypatch.setattr("hallulab.simulator.engine.models.ModelPool", pool_through(made))
    return made


def row(number: int, **changes: Any) -> dict[str, Any]:
    common = {
        "_id": f"q{number}",
        "question": f"Where did player {number} play?",
        "answer": "Defender",
        "type": "bridge",
        "level": "hard",
        "supporting_facts": [["Club", 0], ["Player", 0]],
        "context": [
            ["Club", ["The club has a player."]],
            ["Haihe", ["Haihe is a stadium."]],
            ["Player", ["The player is a Defender in Red."]],
        ],
    }
    return common | changes


def folder(path: Path, *rows: dict[str, Any]) -> Path:
    path.mkdir(exist_ok=True)
    (path / "distractor.jsonl").write_text("".join(json.dumps(each) + "\n" for each in rows))
    return path


@pytest.fixture
def data(tmp_path: Path) -> Path:
    """Twelve questions: one compares, and to one the model has no hallucinated answer."""
    odd = [row(10, type="comparison"), row(11, question="Of what colour was the hat?", answer="Red")]
    return folder(tmp_path / "data", *map(row, range(10)), *odd)


@pytest.mark.usefixtures("transport")
def test_it_writes_replies_and_says_what_it_left_out(
    hallulab: CommandLine, data: Path, tmp_path: Path
) -> None:
    out = tmp_path / "made" / "derived.jsonl"
    ended = hallulab("make-data", "hotpotqa-derived", "--data", data, "--out", out, *ENDPOINT)
    replies = load_rows(out)
    wrong = [reply for reply in replies if reply.label]
    assert (ended.code, ended.out) == (0, f"10 replies written to {out}, {len(wrong)} hallucinated\n")
    assert ended.err == (
        "1 question left out: comparison question\n"
        "1 question left out: no hallucinated answer passed the checks "
        "(of 6 answers 6: it says the same as the right answer)\n"
    )
    assert [reply.group for reply in replies] == [f"q{number}" for number in range(10)]
    assert {reply.reply for reply in wrong} == {"Goalkeeper"}
    assert {reply.reply for reply in replies if not reply.label} == {"Defender"}
    assert [passage.document for passage in replies[0].passages] == ["Club", "Haihe", "Player"]


@pytest.mark.usefixtures("transport")
def test_bench_reads_what_it_wrote(hallulab: CommandLine, data: Path, tmp_path: Path) -> None:
    out = tmp_path / "derived.jsonl"
    hallulab("make-data", "hotpotqa-derived", "--data", data, "--out", out, "--both", *ENDPOINT)
    ended = hallulab("bench", out, "--json", tmp_path / "found.json", "-q")
    assert (ended.code, ended.err) == (0, "")
    described = json.loads((tmp_path / "found.json").read_text())["data"]
    assert (described["replies"], described["left_out"]) == (20, {})


def test_a_replay_writes_the_same_bytes_without_a_model(
    hallulab: CommandLine, data: Path, tmp_path: Path, transport: ScriptedTransport
) -> None:
    build = ("make-data", "hotpotqa-derived", "--data", data, "--out")
    first = hallulab(*build, tmp_path / "first.jsonl", *ENDPOINT, "--record", tmp_path / "asked.jsonl")
    asked = len(transport.requests)
    again = hallulab(*build, tmp_path / "again.jsonl", *REPLAY, tmp_path / "asked.jsonl")
    assert (again.code, again.err) == (0, first.err)
    assert (tmp_path / "again.jsonl").read_bytes() == (tmp_path / "first.jsonl").read_bytes()
    assert len(transport.requests) == asked == PROBES + 10 + 6


def test_what_was_recorded_is_not_asked_again(
    hallulab: CommandLine, data: Path, tmp_path: Path, transport: ScriptedTransport
) -> None:
    folder(data, *map(row, range(10)))
    out = tmp_path / "derived.jsonl"
    build = ("make-data", "hotpotqa-derived", "--data", data, "--out", out, *ENDPOINT)
    record = ("--record", tmp_path / "asked.jsonl")
    few = hallulab(*build, *record, "--limit", "4")
    assert (few.code, len(transport.requests), len(load_rows(out))) == (0, PROBES + 4, 4)
    hallulab(*build, *record)
    assert (len(transport.requests), len(load_rows(out))) == (PROBES + 10, 10)


@pytest.mark.parametrize(
    ("questions", "said"),
    [
        (
            [row(1, type="comparison")],
            "error: no reply came of 1 question, nothing is written: 1 question left out: comparison",
        ),
        ([row(1)], "error: the recording HERE/other.jsonl has no answer"),
    ],
)
def test_without_a_reply_or_its_recording_nothing_is_written(
    hallulab: CommandLine, tmp_path: Path, questions: list[dict[str, Any]], said: str
) -> None:
    data = folder(tmp_path / "data", *questions)
    replay, out = tmp_path / "other.jsonl", tmp_path / "derived.jsonl"
    replay.write_text('{"kind":"other","key":"another","answer":1}\n')
    ended = hallulab("make-data", "hotpotqa-derived", "--data", data, "--out", out, *REPLAY, replay)
    assert (ended.code, out.exists()) == (1, False)
    assert ended.err.startswith(said.replace("HERE", str(tmp_path)))


def test_what_is_wrong_is_said_before_a_server_is_started(
    hallulab: CommandLine, data: Path, tmp_path: Path
) -> None:
    build = ("make-data", "hotpotqa-derived", "--model", "qwen-9000", "--data")
    ended = hallulab(*build, data, "--out", tmp_path)
    assert (ended.code, ended.err) == (2, f"error: --out {tmp_path}: this is a folder. Name a file.\n")
    ended = hallulab(*build, tmp_path, "--out", tmp_path / "out.jsonl")
    assert ended.code == 2
    assert ended.err.startswith(f"error: {tmp_path / 'distractor.jsonl'}: there is no such file.")
    folder(data, row(1), row(2), row(1))
    ended = hallulab(*build, data, "--out", tmp_path / "out.jsonl")
    assert (ended.code, ended.err) == (
        2,
        f"error: {data}: two questions have the _id q1. Give each its own.\n",
    )


def test_the_audit_corpus_is_written_as_it_is_generated(hallulab: CommandLine, tmp_path: Path) -> None:
    out = tmp_path / "audit.jsonl"
    ended = hallulab("make-data", "audit-corpus", "--out", out)
    assert (ended.code, ended.err) == (0, "")
    assert ended.out.startswith(f"840 replies written to {out}, ")
    named = [reply.model_copy(update={"dataset": "audit"}) for reply in generate()]
    assert list(load_rows(out)) == named
