"""The stress test from its file to its reports, on a scripted model."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy
import pytest
from pydantic import ValidationError
from rich.console import Console

from hallulab.chatbots.pipeline import DECLINED
from hallulab.scenarios.errors import OperationalError, UsageError
from hallulab.simulator.engine.models import RunSettings
from hallulab.simulator.rag_trust import command
from hallulab.simulator.rag_trust.command import RagTrustFolder, run_rag_trust
from hallulab.simulator.rag_trust.config import RagTrustConfig, load_config
from hallulab.simulator.rag_trust.document import build_document
from hallulab.simulator.rag_trust.report import RagTrustReport
from hallulab.simulator.show.terminal import print_document
from hallulab.testing.scripted import PROBES, Script, ScriptedTransport, last_user
from tests.kit.serving_models import ServingModels
from tests.places import RECORDINGS

DATA = RECORDINGS / "rag_trust"


class Alike:
    """Embeds every text as the same vector."""

    name = "alike"

    def __init__(self, model: str) -> None:
        pass

    def passages(self, texts: Sequence[str]) -> Any:
        return numpy.array([[0.6, 0.8]] * len(texts), dtype=numpy.float32)

    def queries(self, texts: Sequence[str]) -> Any:
        return self.passages(texts)


@pytest.fixture(autouse=True)
def no_weights(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(command, "SentenceEmbedder", Alike)


def script(body: dict[str, Any]) -> Any:
    """A model that hedges by refusing, cites [1] otherwise, and takes all answers for correct."""
    asked, system = last_user(body), body["messages"][0]["content"]
    if asked.endswith("Answer Yes or No."):
        return {"Yes": 0.9, "No": 0.1}
    if asked.endswith("Rewrite the last message:"):
        return "query"
    return DECLINED if f"write only {DECLINED}" in system else "Virginia <b>[1]</b> [1]"


def config(**fields: Any) -> RagTrustConfig:
    one = {"distractors": [0]}
    return RagTrustConfig.model_validate(
        {
            "data": str(DATA),
            "questions": 2,
            "strategies": ["baseline", "hedge"],
            "robustness": one,
            "accountability": {"distractors": [0, 20]},
            "model": "scripted",
            "base_url": "http://127.0.0.1:9/v1",
            **fields,
        }
    )


async def stressed(
    folder: Path, answer: Script = script, fresh: bool = False, **fields: Any
) -> tuple[RagTrustReport, ScriptedTransport]:
    transport = ScriptedTransport(answer, fields.get("model", "scripted"))
    settings = RunSettings(quiet=True, transport=transport, fresh=fresh)
    return await run_rag_trust(config(**fields), RagTrustFolder(folder), settings), transport


async def test_the_grid_is_asked_and_the_reports_are_written(tmp_path: Path) -> None:
    report, _ = await stressed(tmp_path)
    rows = report.get_rows("factuality")
    assert [(row.poison, row.strategy, row.answers, row.refused) for row in rows] == [
        (0.0, "baseline", 2, 0.0),
        (0.0, "hedge", 2, 1.0),
        (0.3, "baseline", 2, 0.0),
        (0.3, "hedge", 2, 1.0),
    ]
    assert [row.distractors for row in report.get_rows("accountability")] == [0, 0, 20, 20]
    assert {row.similarity for row in report.get_rows("robustness") if row.strategy == "baseline"} == {1.0}
    saved = json.loads((tmp_path / "stress.json").read_text())
    assert saved["rows"][1]["score"] == 1.0
    assert saved["rows"][1]["score_refusals_0"] == 0.0
    with (tmp_path / "stress.csv").open() as file:
        lines = list(csv.DictReader(file))
    assert len(lines) == len(saved["rows"])
    assert lines[0]["dimension"] == "factuality"


async def test_the_page_escapes_and_has_a_chart_a_degradation(tmp_path: Path) -> None:
    await stressed(tmp_path, model="<script>x</script>")
    page = (tmp_path / "stress.html").read_text()
    assert page.count("<figure>") == 2
    assert "factuality over poison" in page
    assert "accountability over distractors" in page
    assert "&lt;script&gt;" in page
    assert "<script" not in page


async def test_all_documents_of_a_question_come_before_the_strategy(tmp_path: Path) -> None:
    _, transport = await stressed(tmp_path, questions=1, accountability={"distractors": [20]})
    systems = [
        body["messages"][0]["content"]
        for body in transport.requests
        if "(End of the documents.)" in body["messages"][0]["content"]
        and "[22]" in body["messages"][0]["content"]
    ]
    baseline, hedge = systems
    assert baseline.split("(End of the documents.)")[0] == hedge.split("(End of the documents.)")[0]


BIG = {"big": {"model": "big", "base_url": "http://127.0.0.1:9/v1"}}


def differing(body: dict[str, Any]) -> Any:
    answer = script(body)
    cites = isinstance(answer, str) and answer.startswith("Virginia")
    return DECLINED if body["model"] == "big" and cites else answer


async def test_several_models_answer_in_rows_of_their_own(tmp_path: Path) -> None:
    settings = RunSettings(quiet=True, transport=ServingModels(differing, "scripted", "big"))
    wanted = config(models=BIG, answering=["default", "big"], strategies=["baseline"], judge="big")
    report = await run_rag_trust(wanted, RagTrustFolder(tmp_path), settings)
    rows = [(row.poison, row.model, row.refused) for row in report.get_rows("factuality")]
    assert rows == [(0.0, "default", 0.0), (0.0, "big", 1.0), (0.3, "default", 0.0), (0.3, "big", 1.0)]
    assert report.models.chatbots == {"default": "scripted", "big": "big"}
    assert report.notes[1:3] == (
        "The judge is big.",
        "big judges its own answers; models prefer their own, so the judge's part may flatter the rows of "
        "big. `judge` names another model.",
    )
    console = Console(width=120, file=io.StringIO())
    print_document(build_document(report), console)
    assert "Model" in console.file.getvalue()  # type: ignore[attr-defined]
    page = (tmp_path / "stress.html").read_text()
    assert "<b>scripted</b> default" in page
    assert "<b>big</b> big" in page
    assert page.count("<figure>") == 4
    for row in report.get_rows("factuality"):
        chart = page.partition(f"vanilla with {row.model}: factuality over poison")[2].partition("</figure>")[
            0
        ]
        assert f"baseline, poison {row.poison:g}: {row.score:.3f}" in chart
    scores = {row.model: row.score for row in report.get_rows("factuality") if row.poison == 0}
    assert scores["default"] != scores["big"]


@pytest.mark.parametrize(
    ("answering", "message"),
    [
        (["small"], "`answering` names the model 'small', which is not under `models`"),
        (["big", "big"], "`answering`: each may stand once"),
    ],
)
def test_models_that_answer_are_known_and_stand_once(answering: list[str], message: str) -> None:
    with pytest.raises(ValidationError, match=message):
        config(models=BIG, answering=answering)


async def test_what_the_journal_holds_is_not_asked_again(tmp_path: Path) -> None:
    first, _ = await stressed(tmp_path)
    again, transport = await stressed(tmp_path)
    assert again == first
    assert len(transport.requests) == PROBES
    afresh, transport = await stressed(tmp_path, fresh=True)
    assert afresh == first
    assert len(transport.requests) > PROBES


async def test_another_seed_or_strategy_text_is_asked_anew(tmp_path: Path) -> None:
    await stressed(tmp_path)
    _, transport = await stressed(tmp_path, seed=1)
    assert len(transport.requests) > PROBES
    assert len((tmp_path / "answers.jsonl").read_text().splitlines()) == 2 * 2 * 2 * 3


async def test_a_judge_that_says_neither_is_a_gap_and_tried_again(tmp_path: Path) -> None:
    def undecided(body: dict[str, Any]) -> Any:
        found = script(body)
        return {"Perhaps": 1.0} if isinstance(found, dict) and "factually" in last_user(body) else found

    report, _ = await stressed(tmp_path, undecided)
    row = report.get_rows("factuality")[0]
    assert (row.score, row.coverage) == (None, 0.0)
    assert any("answers not or not fully measured: the judge: factual" in note for note in report.notes)
    repaired, _ = await stressed(tmp_path)
    assert repaired.get_rows("factuality")[0].coverage == 1.0


async def test_without_any_answer_it_is_an_error_and_no_report(tmp_path: Path) -> None:
    with pytest.raises(OperationalError, match="no question was answered"):
        await stressed(tmp_path, lambda body: "" if body["max_tokens"] > 1 else {"Yes": 1.0})
    assert not (tmp_path / "stress.json").exists()


async def test_an_unknown_option_is_refused_before_anything_is_asked(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="chatbot vanilla: "):
        await stressed(tmp_path / "new", chatbots=[{"name": "vanilla", "options": {"colour": "red"}}])
    assert not (tmp_path / "new").exists()


def test_the_example_is_the_papers_grid() -> None:
    read = load_config(DATA.parents[2] / "examples" / "rag_trust.yaml", {"data": str(DATA)})
    defaults = RagTrustConfig(data=str(DATA), questions=30, model="qwen2.5-coder-1.5b")
    assert read == defaults


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("strategies: [brave]", r"line 1: strategies.0: .*'baseline', 'critical', 'hedge' or 'verify'"),
        ("seed: 1\nfactuality: {poison: [30]}", "line 2: factuality.poison.0: .*less than or equal to 1"),
        ("robustness: {distractors: [8, 0]}", "line 1: robustness.distractors: .*from low to high"),
        ("weights: {robustness: {judge: 1.0}}", "line 1: weights.robustness: the weights add up to 1.4"),
        ("chatbots: [endpoint]", "endpoint takes no prompt strategy; there are vanilla"),
        ("chatbots: [{name: vanilla, options: {cite: true}}]", "sets `strategy` and `cite` itself"),
        ("judge: other", "`judge` names the model 'other', which is not under `models`"),
        ("strategies: [hedge, hedge]", "`strategies`: each may stand once"),
        ("temper: 1", "line 1: temper: unknown key"),
        ("seed: 1", "no data: give HotpotQA's folder with --data"),
    ],
)
def test_a_wrong_file_is_refused_with_place_and_reason(tmp_path: Path, text: str, said: str) -> None:
    file = tmp_path / "stress.yaml"
    file.write_text(text)
    with pytest.raises(UsageError, match=said):
        load_config(file, {})


def test_a_files_folder_begins_at_the_file_and_a_flags_at_the_working_directory(tmp_path: Path) -> None:
    file = tmp_path / "stress.yaml"
    file.write_text("data: hotpotqa")
    assert load_config(file, {}).data == str(tmp_path / "hotpotqa")
    assert load_config(file, {"data": "there"}).data == "there"
