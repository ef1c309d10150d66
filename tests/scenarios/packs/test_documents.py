"""Documents that are damaged, or made to keep a reader busy."""

from __future__ import annotations

from pathlib import Path

import pytest

from hallulab.scenarios.packs.documents import KINDS
from hallulab.scenarios.packs.pack_files import load_scenario
from hallulab.testing.tiny_pack import make_pack
from tests.kit.refusals import refusal
from tests.scenarios.packs.pdf_files import write_pages


@pytest.fixture
def pack(tmp_path: Path) -> Path:
    return make_pack(tmp_path / "pack")


@pytest.mark.parametrize(
    ("line", "title"),
    [("# A", "A"), ("## A b ##  ", "A b"), ("#\tA#", "A"), ("# # b", "# b"), ("# ##", "#"), ("#A", "kettle")],
)
def test_the_first_heading_is_the_title(pack: Path, line: str, title: str) -> None:
    (pack / "documents" / "kettle.md").write_text(f"{line}\n\nText.\n")
    assert load_scenario(pack).documents[0].title == title


def test_a_heading_of_spaces_takes_no_time(pack: Path) -> None:
    (pack / "documents" / "kettle.md").write_text(f"# a{' ' * 200_000}x\n\nText.\n")
    assert load_scenario(pack).documents[0].text == "Text."


@pytest.mark.parametrize("suffix", ["html", "htm", "HTML"])
def test_a_page_is_known_by_its_ending_in_any_case(pack: Path, suffix: str) -> None:
    (pack / "documents" / f"a-page.{suffix}").write_text("<h1>Library  cards</h1><p>A card is free.")
    page = load_scenario(pack).documents[0]
    assert (page.name, page.title, page.source) == ("a-page", "Library cards", f"a-page.{suffix}")
    assert page.text == "A card is free."


@pytest.mark.parametrize(
    ("name", "content", "told"),
    [
        (
            "bad.pdf",
            b"garbage",
            "cannot be read as PDF (ValueError: it is damaged, or no PDF). Repair or decrypt it, or "
            "convert it to text.",
        ),
        (
            "bad.docx",
            b"garbage",
            "cannot be read as Word document (BadZipFile: File is not a zip file). Repair or decrypt it, or "
            "convert it to text.",
        ),
        ("empty.html", b"<p> </p>", "the document holds no text. Write some, or remove it."),
        (
            "scan.pdf",
            write_pages("0 0 9 9 re f"),
            "the document holds no text. Run text recognition (OCR) on it.",
        ),
        ("a.zip", b"x", f"only {KINDS} documents are read. Convert the file or move it away."),
        ("fees.xls", b"x", ".xls files are not read. Save it as .xlsx, or move it away."),
    ],
)
def test_a_document_that_says_nothing_is_one_sentence_and_nothing_before_it(
    pack: Path,
    name: str,
    content: bytes,
    told: str,
    caplog: pytest.LogCaptureFixture,
    capfd: pytest.CaptureFixture[str],
) -> None:
    (pack / "documents" / name).write_bytes(content)
    assert refusal(load_scenario, pack) == f"documents/{name}: {told}"
    assert caplog.records == []
    assert capfd.readouterr() == ("", "")
