"""The EvidenceChain paper's tables and figures from our run of its experiment."""

from __future__ import annotations

import csv
from pathlib import Path

import pytest

from benchmarks.papers.evidence_chain.__main__ import main
from benchmarks.papers.evidence_chain.figures import FIGURES
from benchmarks.papers.evidence_chain.tables import TABLES, write_audit_tables


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    written = tmp_path_factory.mktemp("audit")
    write_audit_tables(written)
    return written


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
    written: list[Path] = []
    monkeypatch.setattr("benchmarks.papers.evidence_chain.__main__.write_audit_tables", written.append)
    assert main([str(tmp_path)]) == 0
    assert written == [tmp_path]
