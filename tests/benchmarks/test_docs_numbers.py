"""Pages have the numbers of the pages that they repeat, and of the commands that replay recordings."""

from __future__ import annotations

import re
from collections.abc import Iterator

import pytest

from benchmarks import corrected_gold
from tests.places import ROOT

Table = list[dict[str, str]]
"""Rows by the text of their heading."""


def read_tables(text: str) -> Iterator[tuple[str, Table]]:
    """Yield (the line of text before it, rows) for each table of a Markdown text."""
    before, cells = "", list[list[str]]()
    for line in [*text.splitlines(), ""]:
        if line.startswith("|"):
            cells.append([cell.strip() for cell in line.strip("|").split("|")])
        elif cells:
            heading, _, *body = cells
            yield before, [dict(zip(heading, row, strict=True)) for row in body]
            cells = []
        if line and not line.startswith("|"):
            before = line


def name_of(row: dict[str, str]) -> str:
    """The detector of a row."""
    return row["detector"].split("`")[1]


def measured(data: str) -> dict[str, dict[str, str]]:
    """The rows of a data set in docs/studies/detectors.md, by detector."""
    text = (ROOT / "docs" / "studies" / "detectors.md").read_text(encoding="utf-8")
    [rows] = [rows for before, rows in read_tables(text) if before.startswith(f"**{data}")]
    return {name_of(row): row for row in rows}


def number(cell: str) -> str:
    """The number of a cell, without its interval."""
    found = re.search(r"[−\d.]+", cell.replace("*", ""))
    assert found is not None, cell
    return found[0]


def trust_table(heading: str) -> Table:
    """The only table of docs/studies/trust.md with this heading."""
    text = (ROOT / "docs" / "studies" / "trust.md").read_text(encoding="utf-8")
    [rows] = [rows for _, rows in read_tables(text) if heading in rows[0]]
    return rows


def test_numbers_of_gold_are_those_of_the_recordings() -> None:
    gold = measured("gold")
    rows = trust_table("`gold`: AUROC of sentences")
    assert len(rows) == 4
    for row in rows:
        found = gold[name_of(row)]
        assert number(row["`gold`: AUROC of sentences"]) == number(found["AUROC of sentences [95%]"])
        assert number(row["AUROC of replies"]) == number(found["AUROC [95%]"])
        assert number(row["F1 of replies"]) == number(found["F1"])


def test_numbers_of_the_readme_are_those_of_the_pages() -> None:
    [rows] = [rows for _, rows in read_tables((ROOT / "README.md").read_text(encoding="utf-8"))]
    default = {
        name_of(row): row["`gold`: AUROC of sentences"] for row in trust_table("`gold`: AUROC of sentences")
    }
    assert {name_of(row): row["default model (1.5B)"] for row in rows} == default
    capable = {
        name_of(row): row["sentences: AUROC"]
        for row in trust_table("sentences: AUROC")
        if "`gold`" in row["data (replies)"]
    }
    published = {name_of(row): row["capable model, as published"] for row in rows}
    assert {name: shown for name, shown in published.items() if shown} == capable


def test_numbers_of_the_methods_page_are_those_of_the_recordings() -> None:
    text = (ROOT / "docs" / "studies" / "methods.md").read_text(encoding="utf-8")
    [rows] = [rows for _, rows in read_tables(text) if "HalluDetect, `mixture`" in rows[0]]
    by_name = {row[""]: row for row in rows}
    for column, detector in (("HalluDetect, `mixture`", "halludetect"), ("MetaRAG", "metarag")):
        found = measured("gold")[detector]
        assert number(by_name["AUROC of sentences"][column]) == number(found["AUROC of sentences [95%]"])
        assert number(by_name["AUROC of replies (6 clean ones)"][column]) == number(found["AUROC [95%]"])
        assert number(by_name["F1 of replies at the shipped threshold"][column]) == number(found["F1"])
        error = by_name["HPT-1 against the labels', mean over five bots"][column]
        assert number(error) == number(found["HPT-1, error"])
        assert number(by_name["calls a reply"][column]) == number(found["calls a reply"])


def test_numbers_of_other_systems_are_those_of_the_recordings() -> None:
    begin, mtrag = measured("BEGIN"), measured("MTRAG")
    rows = trust_table("MTRAG (216)")
    assert len(rows) == 5
    for row in rows:
        name = name_of(row)
        for heading, found in (("BEGIN, Wizard of Wikipedia (200)", begin), ("MTRAG (216)", mtrag)):
            if row[heading] == "not measured":
                assert found[name]["AUROC [95%]"] == "not measured"
            else:
                assert number(row[heading]) == number(found[name]["AUROC [95%]"])


@pytest.mark.parametrize("page", ["corrected.md", "design/corrected-numbers.md"])
def test_numbers_corrected_by_planted_errors_are_those_of_the_report(page: str) -> None:
    stress = (ROOT / "docs" / "studies" / "stress.md").read_text(encoding="utf-8")
    _, rates = stress.split("The annotated runs, HPT-1, by `halludetect`:")
    [all_chatbots] = re.findall(r"^\| all chatbots \| (.*) \|$", rates, re.MULTILINE)
    labels, counted, by_all_kinds, by_whole_sentences = all_chatbots.split(" | ")
    text = " ".join((ROOT / "docs" / page).read_text(encoding="utf-8").split())
    assert re.search(
        rf"HalluDetect counts {counted} (hallucinations a turn )?where the labels have {labels}\.", text
    )
    assert re.search(rf"Corrected by all kinds.{{,30}} it is {by_all_kinds},", text)
    assert re.search(
        rf"corrected by whole wrong sentences.{{,40}} it is {by_whole_sentences}\b", text, re.IGNORECASE
    )


@pytest.mark.slow
def test_the_page_of_corrected_numbers_has_what_half_of_the_annotations_give(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Slow, because 4,000 draws are corrected."""
    monkeypatch.chdir(ROOT)
    assert corrected_gold.main() == 0
    assert capsys.readouterr().out in (ROOT / "docs" / "studies" / "corrected.md").read_text(encoding="utf-8")
