"""The verbs of `hallulab`: each does what its command does, without a terminal."""

from __future__ import annotations

import inspect
import json
from pathlib import Path

import pytest

import hallulab
from hallulab import Passage, Run, TurnView, UsageError
from hallulab.simulator.options.commands import BenchOptions, DetectOptions
from hallulab.simulator.options.data import PlantOptions
from tests.places import RECORDINGS, ROOT

DEMO = ROOT / "examples" / "demo.yaml"
RECORDED = {"model": "qwen2.5-coder-1.5b", "replay": RECORDINGS / "demo.jsonl.gz", "quiet": True}
FEES = Passage(id="fees#0", document="fees", text="The fee is Rs 200.")
CHAT = {"messages": [{"role": "user", "content": "The fee?"}, {"role": "assistant", "content": "Rs 500."}]}
ASKED = {"question": "The fee?", "passages": ["The fee is Rs 200."]}
ANSWERS = (
    {**ASKED, "id": "a", "reply": "Rs 200.", "label": False},
    {**ASKED, "id": "b", "reply": "Rs 500.", "label": True},
)


@pytest.fixture
def own(tmp_path: Path) -> Run:
    """A run folder of one imported chat."""
    (tmp_path / "chats.jsonl").write_text(json.dumps(CHAT))
    return hallulab.import_chats(tmp_path / "chats.jsonl", out=tmp_path / "own", format="openai")


@pytest.fixture
def labelled(tmp_path: Path) -> Path:
    """A labelled file of a clean reply and a hallucinated one."""
    file = tmp_path / "labelled.jsonl"
    file.write_text("".join(json.dumps(line) + "\n" for line in ANSWERS))
    return file


def view(reply: str) -> TurnView:
    return TurnView(question="What is the fee?", passages=(FEES,), reply=reply)


def test_simulate_holds_conversations_and_judges_none(tmp_path: Path) -> None:
    run = hallulab.simulate(DEMO, out=tmp_path / "run", chatbots=["vanilla"], limit=1, **RECORDED)
    assert len(run.turns()) > 0
    assert len(run.verdicts()) == 0
    assert not (run.path / "report.json").exists()


def test_detect_judges_a_saved_run_and_reports(own: Run) -> None:
    run = hallulab.detect(own.path, ["lexical"])
    assert run.verdicts()[["detector", "outcome"]].values.tolist() == [["lexical", "abstained"]]
    assert (run.path / "report.json").read_text() == run.report().text()


def test_judge_gives_a_judgement_a_reply_in_order() -> None:
    judgements = hallulab.judge_replies([view("The fee is Rs 200."), view("Rs 500.")], "lexical")
    assert [judgement.flagged for judgement in judgements] == [False, True]


def test_judge_takes_options_of_the_detector() -> None:
    lenient = {"name": "lenient", "kind": "lexical", "options": {"threshold": 1.0}}
    [judgement] = hallulab.judge_replies([view("The fee is Rs 500.")], lenient)
    assert not judgement.flagged


async def test_ajudge_is_awaited_in_a_running_loop() -> None:
    [judgement] = await hallulab.ajudge_replies([view("Rs 500.")], "lexical")
    assert judgement.flagged


def test_judge_names_an_unknown_detector() -> None:
    with pytest.raises(UsageError, match=r"^there is no detector 'lexicall'"):
        hallulab.judge_replies([view("Rs 500.")], "lexicall")


def test_bench_returns_its_rows_and_writes_what_is_named(labelled: Path, tmp_path: Path) -> None:
    report = hallulab.bench(str(labelled), json_file=tmp_path / "numbers.json", quiet=True)
    rows = report.frame()
    replies = rows[rows["level"] == "response"]
    assert set(replies["detector"]) == {"flag-all", "majority", "lexical"}
    assert json.loads((tmp_path / "numbers.json").read_text()) == json.loads(report.text())


def test_bench_takes_options_of_a_data_set_as_a_mapping(labelled: Path) -> None:
    with pytest.raises(UsageError, match="colour"):
        hallulab.bench(str(labelled), option={"colour": "red"})


def test_plant_writes_errors_with_their_twins_for_bench(tmp_path: Path) -> None:
    planted = hallulab.plant("consumer-grievance-india", out=tmp_path / "planted", count=4, kinds=["number"])
    assert [reply.label for reply in planted.replies] == [True, False] * 4
    assert len((tmp_path / "planted" / "planted.jsonl").read_text().splitlines()) == 8


def test_calibrate_wants_policy_and_file_together() -> None:
    with pytest.raises(UsageError, match=r"^--policy and --out go together"):
        hallulab.calibrate(out="policy.yaml")


def test_import_and_export_are_each_others_way_back(own: Run, tmp_path: Path) -> None:
    counts = hallulab.export_chats(own, "openai", tmp_path / "out.jsonl")
    assert counts.written == 1
    [line] = (tmp_path / "out.jsonl").read_text().splitlines()
    assert json.loads(line)["messages"] == CHAT["messages"]


def test_load_run_opens_a_folder(own: Run) -> None:
    [conversation] = hallulab.load_run(own.path).conversations
    assert conversation.turns[0].user == "The fee?"
    assert hallulab.load_run(str(own.path)).path == own.path


@pytest.mark.parametrize(
    ("verb", "options"),
    [(hallulab.bench, BenchOptions), (hallulab.detect, DetectOptions), (hallulab.plant, PlantOptions)],
)
def test_a_verb_has_the_options_of_its_command(verb: object, options: type) -> None:
    assert callable(verb)
    assert set(inspect.signature(verb).parameters) == set(inspect.signature(options).parameters)
    assert "model: Model to serve" in str(verb.__doc__)


def test_an_unknown_option_is_a_type_error() -> None:
    with pytest.raises(TypeError, match="detector"):
        hallulab.bench("x", detector=["lexical"])  # type: ignore[call-arg]


def test_each_verb_waits_or_is_awaited() -> None:
    verbs = (
        "simulate",
        "run",
        "detect",
        "judge",
        "judge_replies",
        "bench",
        "plant",
        "calibrate",
        "import_chats",
        "export_chats",
    )
    for verb in verbs:
        assert not inspect.iscoroutinefunction(getattr(hallulab, verb))
        assert inspect.iscoroutinefunction(getattr(hallulab, f"a{verb}"))
