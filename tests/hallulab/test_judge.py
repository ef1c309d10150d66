"""`hallulab.judge`: chats as Python programs have them, and detectors of one's own."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy
import pandas
import pytest

import hallulab
from hallulab import Detector, DetectorContext, Judgement, OperationalError, Traits, TurnView, UsageError
from hallulab.simulator.engine.judging import WORTH
from hallulab.testing.endpoint import MODEL, serve_stub

ROWS: list[dict[str, Any]] = [
    {"question": "The fee?", "contexts": ["The fee is 200 rupees."], "answer": "It is 500 rupees."},
    {"question": "How long?", "contexts": ["Within two years."], "answer": "Within two years."},
]


class Digits(Detector):
    """Flags replies with a digit."""

    threshold = 0.5
    traits = Traits(needs_model=False)
    version = "1"

    def __init__(self, name: str, context: DetectorContext | None = None) -> None:
        self.name = name

    async def detect(self, view: TurnView) -> Judgement:
        found = any(map(str.isdigit, view.reply))
        return Judgement(outcome="scored", score=float(found), flagged=found)


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An empty working directory."""
    monkeypatch.chdir(tmp_path)


def list_flags(run: hallulab.Run) -> list[tuple[str, bool]]:
    return [(row.detector, row.flagged) for row in run.verdicts().itertuples()]


@pytest.mark.parametrize(
    "chats",
    [
        ROWS,
        (row for row in ROWS),
        pandas.DataFrame(ROWS),
        [
            {**ROWS[0], "score": math.nan, "session": None, "contexts": numpy.array(ROWS[0]["contexts"])},
            ROWS[1],
        ],
        pandas.DataFrame(ROWS).assign(score=[0.5, None], at=pandas.Timestamp("2026-01-01")),
    ],
    ids=["rows", "generator", "frame", "missing and arrays", "frame with times"],
)
def test_rows_and_frames_are_judged(chats: Any) -> None:
    run = hallulab.judge(chats, ["lexical"], quiet=True)
    assert sorted(list_flags(run)) == [("lexical", False), ("lexical", True)]
    assert run.path.name.startswith("rows-")
    assert (run.path / "report.html").is_file()


def test_without_a_model_the_log_says_what_that_is_worth(caplog: pytest.LogCaptureFixture) -> None:
    pandas.DataFrame(ROWS).to_json("chats.jsonl", orient="records", lines=True)
    run = hallulab.judge("chats.jsonl", out="mine", quiet=True)
    assert list_flags(run) == [("combined", True), ("combined", False)]
    assert WORTH in caplog.messages


def test_the_run_folder_calls_rows_by_no_temporary_name() -> None:
    run = hallulab.judge(ROWS, ["lexical"], out="mine", quiet=True)
    assert '"file": "rows"' in (run.path / "experiment.json").read_text()


def test_a_detector_is_an_object_a_class_or_a_name_of_code() -> None:
    Path("own_digits.py").write_text(f"from {__name__} import Digits\n\n\nclass Mine(Digits):\n    pass\n")
    given = [Digits("object"), Digits, "own_digits:Mine", {"name": "named", "kind": "own_digits:Mine"}]
    run = hallulab.judge(ROWS, given, out="mine", quiet=True)
    assert sorted(list_flags(run)) == [
        (name, flagged) for name in ("Digits", "Mine", "named", "object") for flagged in (False, True)
    ]


def test_two_objects_of_a_class_judge_side_by_side() -> None:
    run = hallulab.judge(ROWS[:1], [Digits("a"), Digits("b")], out="mine", quiet=True)
    assert list_flags(run) == [("a", True), ("b", True)]


async def test_ajudge_is_awaited() -> None:
    run = await hallulab.ajudge(ROWS[:1], [Digits], out="mine", quiet=True)
    assert list_flags(run) == [("Digits", True)]


class Searching(Digits):
    """Flags replies of whose words the documents hold none."""

    async def detect(self, view: TurnView) -> Judgement:
        assert view.knowledge is not None
        found = await view.knowledge.search(view.reply, 1)
        return Judgement(outcome="scored", score=float(not found), flagged=not found)


def test_detectors_search_by_words_where_no_vectors_can_be_made(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("hallulab.agents.retrieval.word_search.find_spec", lambda module: None)
    Path("docs").mkdir()
    Path("docs", "fees.md").write_text("The fee is 200 rupees.")
    rows = [{"question": "The fee?", "answer": reply} for reply in ("Zebras gallop.", "200 rupees.")]
    with serve_stub() as url:
        run = hallulab.judge(
            rows, [Searching], documents="docs", out="mine", base_url=url, model=MODEL, quiet=True
        )
    assert list_flags(run) == [("Searching", True), ("Searching", False)]


def test_after_a_failure_the_log_says_what_goes_on(caplog: pytest.LogCaptureFixture) -> None:
    with pytest.raises(OperationalError):
        hallulab.judge(
            ROWS, ["direct-judge"], out="mine", base_url="http://127.0.0.1:9/v1", model="m", quiet=True
        )
    command = "hallulab detect mine --detectors direct-judge --model m --base-url http://127.0.0.1:9/v1"
    assert caplog.messages[-1] == f"the chats are imported. Go on by: {command}"


class Asking(Digits):
    """Asks a model."""

    traits = Traits()


@pytest.mark.parametrize(
    ("chats", "detectors", "said"),
    [
        ([], ["lexical"], "rows: there is none. Give at least one reply."),
        ({"answer": ["x"]}, ["lexical"], "rows: a dict is no list of rows. Give a list of mappings, "),
        (
            pandas.DataFrame([["x", "y"]], columns=["answer", "answer"]),
            ["lexical"],
            "rows: two columns are called 'answer'. Drop or rename one.",
        ),
        (ROWS, "lexical", "judge: `detectors` is 'lexical'; it takes Sequence["),
        ([3], ["lexical"], "rows, line 1: is a int. Give a file, a frame or mappings such as "),
        (
            [{"a": {1}}],
            ["lexical"],
            "rows, line 1: a set is no value of JSON. Give texts, numbers and lists.",
        ),
        ([ROWS[0], {"answer": "x"}], ["lexical"], "rows, line 2: "),
        (ROWS, [3], "detectors: item 0 is a int. Give a name, a mapping, "),
        (ROWS, [Asking], "Asking asks a model, and none is named. "),
        (ROWS, [Asking("it")], "it asks a model, and none is named. "),
        (3, ["lexical"], "judge: `chats` is 3; it takes str | Path | Iterable[Mapping[str, Any]]."),
    ],
)
def test_something_else_is_refused_in_a_sentence(chats: Any, detectors: Any, said: str) -> None:
    with pytest.raises(UsageError) as caught:
        hallulab.judge(chats, detectors)
    assert str(caught.value).startswith(said)
    assert list(Path().glob("runs/*")) == []
