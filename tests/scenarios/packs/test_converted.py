"""HTML and Word documents become Markdown; what no reader can use is one sentence."""

from __future__ import annotations

import zipfile
from pathlib import Path

import pytest

from hallulab.scenarios.errors import UsageError
from hallulab.scenarios.packs.kinds import parts, word
from hallulab.scenarios.packs.pack_files import load_scenario
from hallulab.testing.tiny_pack import make_pack

PAGE = """<html><head><title>No part of the text</title><style>p {}</style></head><body>
<script>alert(1)</script>
<h1>Library  cards</h1><p>A <b>card</b> is free_of_charge for <a href="x">residents</a>.</p>
<ul><li>one</li><li>two</li></ul><table><tr><th>fee</th><th>days</th></tr><tr><td>2*3</td><td>5</td></tr></table>
<h2>Late</h2>Ten cents a day.</body></html>"""

WORD = """<w:document xmlns:w="http://schemas.openxmlformats.org/wordprocessingml/2006/main"><w:body>
<w:p><w:pPr><w:pStyle w:val="Heading1"/></w:pPr><w:r><w:t>Late fees</w:t></w:r></w:p>
<w:p><w:r><w:t xml:space="preserve">Ten cents </w:t></w:r><w:r><w:t>a day.</w:t></w:r></w:p>
</w:body></w:document>"""

STYLES = """<w:styles xmlns:w="http://schemas.openxmlformats.org/wordprocessingml/2006/main">
<w:style w:type="paragraph" w:styleId="Heading1"><w:name w:val="heading 1"/></w:style></w:styles>"""


@pytest.fixture
def documents(tmp_path: Path) -> Path:
    return make_pack(tmp_path / "pack") / "documents"


def word_file(path: Path, body: str = WORD) -> None:
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("word/document.xml", body)
        archive.writestr("word/styles.xml", STYLES)


@pytest.mark.parametrize("suffix", ["html", "htm", "HTML"])
def test_a_page_keeps_headings_lists_and_tables_and_loses_what_nobody_reads(
    documents: Path, suffix: str
) -> None:
    (documents / f"a-page.{suffix}").write_text(PAGE)
    page = load_scenario(documents.parent).documents[0]
    assert (page.name, page.title, page.source) == ("a-page", "Library cards", f"a-page.{suffix}")
    assert " ".join(page.text.split()) == (
        "A card is free_of_charge for residents. * one * two | fee | days | | --- | --- | | 2*3 | 5 | "
        "## Late Ten cents a day."
    )


def test_a_word_document_keeps_its_headings(documents: Path) -> None:
    word_file(documents / "fees.docx")
    fees = load_scenario(documents.parent).documents[0]
    assert (fees.name, fees.title, fees.text) == ("fees", "Late fees", "Ten cents a day.")


@pytest.mark.parametrize(
    ("name", "content", "told"),
    [
        (
            "bad.docx",
            b"garbage",
            "bad.docx: cannot be read as Word document (BadZipFile: File is not a zip file)",
        ),
        ("empty.html", b"<p> </p>", "empty.html: the document holds no text. Write some, or remove it."),
    ],
)
def test_a_document_without_text_is_one_sentence(
    documents: Path, name: str, content: bytes, told: str
) -> None:
    (documents / name).write_bytes(content)
    with pytest.raises(UsageError) as error:
        load_scenario(documents.parent)
    assert told in str(error.value)


def test_a_word_document_that_unpacks_to_far_more_is_refused(
    documents: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    word_file(documents / "bomb.docx", WORD.replace("Ten", "Ten " * 1000))
    monkeypatch.setattr(parts, "LARGEST_UNPACKED", 4000)
    with pytest.raises(ValueError, match=r"bytes unpacked, more than 4,000"):
        word.read((documents / "bomb.docx").read_bytes())


def test_entities_of_a_word_document_open_no_files(documents: Path, tmp_path: Path) -> None:
    secret = tmp_path / "secret.txt"
    secret.write_text("canary")
    entity = f'<!DOCTYPE d [<!ENTITY e SYSTEM "file://{secret}">]>'
    word_file(documents / "spy.docx", entity + WORD.replace("Ten cents", "Ten &e; cents"))
    try:
        texts = [document.text for document in load_scenario(documents.parent).documents]
    except UsageError as error:
        texts = [str(error)]
    assert not any("canary" in text for text in texts)
