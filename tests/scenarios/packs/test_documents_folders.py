"""A folder of documents as people have them: one bad file does not refuse it, copies count once."""

from __future__ import annotations

import unicodedata
from pathlib import Path

import pytest

from hallulab.scenarios.errors import UsageError
from hallulab.scenarios.packs.documents import ANYWHERE, KINDS, Folder, read_folder
from hallulab.scenarios.packs.labels import DocumentDefaults
from tests.kit.refusals import refusal


def read(folder: Path, strict: bool = False) -> Folder:
    return read_folder(folder, DocumentDefaults(), ANYWHERE, strict=strict)


def put(folder: Path, **files: str | bytes) -> None:
    """Write files; `__` in a name stands for its dot."""
    for name, content in files.items():
        data = content.encode() if isinstance(content, str) else content
        (folder / name.replace("__", ".")).write_bytes(data)


def test_a_bad_file_is_left_out_and_named(tmp_path: Path) -> None:
    put(tmp_path, fees__md="# Fees\n\nA saw costs 6 euros.", empty__md=" \n", chart__drawio="x")
    found = read(tmp_path)
    assert [document.name for document in found.documents] == ["fees"]
    assert found.notes == (
        f"left out: {tmp_path}/chart.drawio: only {KINDS} documents are read. Convert the file or move it "
        "away.",
        f"left out: {tmp_path}/empty.md: the document holds no text. Write some, or remove it.",
    )


def test_strict_reading_refuses_a_bad_file(tmp_path: Path) -> None:
    put(tmp_path, fees__md="A saw costs 6 euros.", empty__md="")
    with pytest.raises(UsageError, match=r"empty\.md: the document holds no text"):
        read(tmp_path, strict=True)


def test_a_folder_of_which_nothing_can_be_read_is_refused(tmp_path: Path) -> None:
    put(tmp_path, empty__md="")
    assert refusal(read, tmp_path) == (
        f"{tmp_path}: no document in it can be read. The first: left out: empty.md: the document "
        "holds no text. Write some, or remove it."
    )


@pytest.mark.parametrize("name", ["desktop.ini", "Thumbs.db", "~$fees.docx", ".DS_Store", "Icon\r"])
def test_files_of_systems_are_skipped(tmp_path: Path, name: str) -> None:
    put(tmp_path, fees__md="A saw costs 6 euros.")
    (tmp_path / name).write_bytes(b"\x00\x01")
    found = read(tmp_path, strict=True)
    assert ([document.name for document in found.documents], found.notes) == (["fees"], ())


def test_of_copies_the_one_with_the_shortest_name_is_read(tmp_path: Path) -> None:
    for name in ("hours (1).txt", "hours.txt", "Copy of hours.txt"):
        (tmp_path / name).write_text("Open from nine\nto five.\n")
    put(tmp_path, fees__txt="Entry is free.")
    found = read(tmp_path)
    assert [document.name for document in found.documents] == ["fees", "hours"]
    assert found.notes == (
        f"left out: copies of {tmp_path}/hours.txt, which say the same: Copy of hours.txt, hours (1).txt",
    )


def test_one_text_under_two_titles_is_two_documents(tmp_path: Path) -> None:
    put(tmp_path, goa__md="# Goa\n\nThe fee is 5.", delhi__md="# Delhi\n\nThe fee is 5.")
    assert [document.title for document in read(tmp_path).documents] == ["Delhi", "Goa"]


def test_a_second_document_of_one_name_keeps_its_suffix(tmp_path: Path) -> None:
    put(tmp_path, rules__md="No dogs.", rules__txt="No bicycles.")
    found = read(tmp_path)
    assert [document.name for document in found.documents] == ["rules", "rules.txt"]
    assert found.notes == (
        f"{tmp_path}/rules.txt: is called rules.txt here: another document is called rules",
    )


def test_one_name_in_two_spellings_of_unicode_is_two_names(tmp_path: Path) -> None:
    for form, text in (("NFC", "A saw."), ("NFD", "A drill.")):
        (tmp_path / unicodedata.normalize(form, "Gebühr.txt")).write_text(text)  # type: ignore[arg-type]
    assert [document.name for document in read(tmp_path).documents] == ["Gebühr", "Gebühr.txt"]


def test_a_word_broken_at_the_end_of_a_line_is_whole(tmp_path: Path) -> None:
    put(tmp_path, a__txt="The re-\nplacement of a well-\nknown book, and infor-\nmation, cost 5 euros.")
    assert read(tmp_path).documents[0].text == (
        "The replacement of a well-known book, and information, cost 5 euros."
    )


def test_ligatures_soft_hyphens_and_combining_accents_are_one_text(tmp_path: Path) -> None:
    put(tmp_path, a__txt="The o\N{LATIN SMALL LIGATURE FFI}ce sells soft\xadware in Mu\u0308nchen.")
    assert read(tmp_path).documents[0].text == "The office sells software in M\xfcnchen."


@pytest.mark.parametrize(
    ("content", "encoding"),
    [
        ("Fee: £30 – or €35. It’s due.".encode("cp1252"), "windows-1252"),
        ("延滞料は一日二百円です。道具は七日間借りられます。".encode("cp932"), "cp932"),
        ("Плата 5 рублей в неделю за дрель, за пилу 6 рублей.".encode("cp1251"), "cp1251"),
        ("\ufeffUm 9 Uhr öffnet der Laden.".encode("utf-16-le"), "utf-16-le"),
        ("Um 9 Uhr öffnet der Laden.".encode("utf-16-be"), "utf-16-be"),
        ("工具は七日間借りられます。".encode("iso2022_jp"), "iso2022_jp"),
    ],
)
def test_a_text_in_another_encoding_is_read_and_named(tmp_path: Path, content: bytes, encoding: str) -> None:
    put(tmp_path, a__txt=content)
    found = read(tmp_path)
    assert found.documents[0].text == content.decode(encoding).lstrip("\ufeff")
    assert found.notes == (f"{tmp_path}/a.txt: is not UTF-8, and was read as {encoding}",)


@pytest.mark.parametrize("end", [" 6 €".encode("cp1252"), " 6 €".encode()[:-1]])
def test_some_wrong_bytes_do_not_spoil_the_other_letters(tmp_path: Path, end: bytes) -> None:
    put(tmp_path, a__txt="Die Gebühr beträgt für Größere 5 €.".encode() + end)
    found = read(tmp_path)
    assert found.documents[0].text.removesuffix(" €") == "Die Gebühr beträgt für Größere 5 €. 6"
    assert found.notes[0].endswith("a.txt: is not UTF-8, and was read as UTF-8 with bytes of windows-1252")


def test_nul_is_left_out_and_a_form_feed_parts_paragraphs(tmp_path: Path) -> None:
    put(tmp_path, a__txt="Page\x00 one.\n\x0c\nPage two.")
    assert read(tmp_path).documents[0].text.split() == ["Page", "one.", "Page", "two."]
