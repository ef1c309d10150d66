"""The EvidenceChain paper's tables and figures from our run of its experiment."""

from __future__ import annotations

import csv
import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from benchmarks.papers.evidence_chain.__main__ import main
from benchmarks.papers.evidence_chain.analysis import attribution_rows
from benchmarks.papers.evidence_chain.figures import FIGURES
from benchmarks.papers.evidence_chain.study import METHODS, read_ragtruth
from benchmarks.papers.evidence_chain.tables import ATTRIBUTIONS, TABLES, as_csv, write_tables
from tests.benchmarks.labelled_folder import write_ragtruth


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    written = tmp_path_factory.mktemp("audit")
    write_tables(written)
    return written


CLAIM = {
    "label": "supported",
    "supporting_sentences": [[1], [2]],
    "claim": "The pool opens at seven.",
    "evidence": ["Tickets are sold here.", "The pool opens at seven.", "The pool closes late.", " "],
    "meta": {"id": "c", "claim_title": "Pool", "claim_section": "", "claim_context": ""},
}
QUESTION = {
    "_id": "q",
    "question": "Where was Ann born?",
    "answer": "Paris",
    "type": "bridge",
    "level": "hard",
    "supporting_facts": [["Ann", 1]],
    "context": [["Ann", ["Ann sings.", " Ann was born in Paris."]], ["Ben", ["Ben paints."]]],
}


def write_supporting(folder: Path, *claims: dict[str, Any]) -> Path:
    for file, lines in (("wice/claims.jsonl", claims), ("hotpotqa/distractor.jsonl", [QUESTION])):
        (folder / file).parent.mkdir(parents=True, exist_ok=True)
        (folder / file).write_text("".join(json.dumps(line) + "\n" for line in lines))
    return folder


def test_a_statement_is_attributed_to_the_sentence_that_people_named(tmp_path: Path) -> None:
    unnamed = {**CLAIM, "supporting_sentences": [], "label": "not_supported"}
    wrong = {**CLAIM, "supporting_sentences": [[0]], "meta": {**CLAIM["meta"], "id": "w"}}  # type: ignore[dict-item]
    rows = attribution_rows(write_supporting(tmp_path, CLAIM, unnamed, wrong), ATTRIBUTIONS)
    assert [(row["Data"], row["Supported statements"], row["Top-1 evidence accuracy"]) for row in rows] == [
        *[("WiCE", 2, 0.5)] * 3,
        *[("HotpotQA", 1, 1.0)] * 3,
    ]
    assert [row["Sentences of evidence, mean"] for row in rows] == [4.0] * 3 + [3.0] * 3


def test_a_folder_without_supporting_sentences_is_refused_before_the_work(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main([str(tmp_path / "out"), "--supporting", str(tmp_path)]) == 2
    said = f"error: {tmp_path}: there is none of wice/claims.jsonl, hotpotqa/distractor.jsonl.\n"
    assert capsys.readouterr().err == said
    assert not (tmp_path / "out").exists()


def test_every_sentence_and_word_of_the_test_part_is_written_with_its_scores(folder: Path) -> None:
    sentences, words = (
        list(csv.DictReader((folder / f"{name}.csv").read_text().splitlines()))
        for name in ("sentences", "words")
    )
    sizes = {row["split"]: row for row in table(folder, 1)}
    assert len(sentences) == int(sizes["test"]["Sentences"])
    assert len(words) == int(sizes["test"]["Tokens"])
    assert sum(int(row["Hallucinated"]) for row in words) == int(sizes["test"]["Hallucinated tokens"])
    assert set(sentences[0]) == {
        *("Reply", "Task", "Start", "End", "Text", "Hallucinated", "Evidence"),
        *METHODS.values(),
    }
    assert all(0 <= float(row["EvidenceChain_RF"]) <= 1 for row in words)


def test_a_word_is_no_formula_of_a_spreadsheet() -> None:
    assert as_csv([{"Text": "=1+1", "Score": -0.5}]) == "Text,Score\n'=1+1,-0.500\n"


@pytest.mark.parametrize(
    ("splits", "test", "calibration"), [(["train"] * 10, 3, 1), (["train"] * 8 + ["test"] * 2, 2, 2)]
)
def test_ragtruth_is_divided_by_source_and_keeps_its_own_test_split(
    tmp_path: Path, splits: list[str], test: int, calibration: int
) -> None:
    replies = read_ragtruth(write_ragtruth(tmp_path, splits))
    by_group = {reply.group: reply.meta["split"] for reply in replies}
    assert len(replies) == 20
    assert Counter(by_group.values()) == {
        "test": test,
        "calibration": calibration,
        "train": 10 - test - calibration,
    }
    own = {reply.group for reply in replies if splits[int(reply.group.lstrip("s"))] == "test"}
    assert own <= {group for group, split in by_group.items() if split == "test"}


def table(folder: Path, number: int) -> list[dict[str, str]]:
    return list(csv.DictReader((folder / f"table-{number}.csv").read_text().splitlines()))


def test_there_are_all_tables_and_figures_of_the_paper(folder: Path) -> None:
    assert sorted(TABLES) == list(range(1, 12))
    assert sorted(FIGURES) == list(range(1, 8))
    assert all(table(folder, number) for number in TABLES)
    for number in FIGURES:
        assert (folder / f"figure-{number}.png").read_bytes().startswith(b"\x89PNG")


def test_the_split_has_the_papers_sizes(folder: Path) -> None:
    sizes = {row["split"]: (row["Sources"], row["Responses"], row["Sentences"]) for row in table(folder, 1)}
    assert sizes == {
        "calibration": ("20", "120", "330"),
        "test": ("42", "252", "690"),
        "train": ("78", "468", "1230"),
    }


def test_hallucinations_are_distributed_as_in_the_paper(folder: Path) -> None:
    by_source = {row["source"]: row["Hallucination rate"] for row in table(folder, 3)}
    assert by_source == {"Yelp": "0.650", "MARCO": "0.233", "CNN/DM": "0.283", "Recent News": "0.278"}
    by_model = [row["Hallucination_responses"] for row in table(folder, 4)]
    assert by_model == ["21", "16", "69", "64", "90", "74"]


@pytest.mark.parametrize(("number", "f1", "auc"), [(5, 0.545, 0.919), (6, 0.97, 0.999)])
def test_the_forest_is_the_best_of_the_six(folder: Path, number: int, f1: float, auc: float) -> None:
    rows = {row["Method"]: row for row in table(folder, number)}
    forest = rows.pop("EvidenceChain_RF")
    assert len(rows) == 5
    assert all(float(row["F1"]) < float(forest["F1"]) for row in rows.values())
    assert all(float(row["ROC_AUC"]) < float(forest["ROC_AUC"]) for row in rows.values())
    assert float(forest["F1"]) >= f1
    assert float(forest["ROC_AUC"]) >= auc


def test_without_mismatch_rules_detection_is_worse(folder: Path) -> None:
    f1 = {row["Variant"]: float(row["F1"]) for row in table(folder, 8)}
    assert f1["No mismatch rules"] < f1["All evidence-chain features"]


def test_attribution_is_over_the_papers_sentences(folder: Path) -> None:
    assert [row["Supported sentences"] for row in table(folder, 9)] == ["552"] * 3


def test_low_coverage_goes_with_hallucination(folder: Path) -> None:
    rows = table(folder, 10)
    assert sum(int(row["Responses"]) for row in rows) == 252
    rates = [float(row["Mean_hallucinated_token_rate"]) for row in rows if row["Responses"] != "0"]
    assert rates == sorted(rates, reverse=True)


def test_a_folder_that_is_a_file_is_refused_before_the_work(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    taken = tmp_path / "taken"
    taken.write_text("mine")
    assert main([str(taken)]) == 2
    assert capsys.readouterr().err == f"error: DIR {taken}: this is a file. Name a folder.\n"
    assert taken.read_text() == "mine"


def test_the_command_writes_into_the_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    written: list[tuple[Path | None, ...]] = []
    monkeypatch.setattr(
        "benchmarks.papers.evidence_chain.__main__.write_tables", lambda *given: written.append(given)
    )
    assert main([str(tmp_path), "--data", "ragtruth"]) == 0
    assert written == [(tmp_path, Path("ragtruth"), None)]
