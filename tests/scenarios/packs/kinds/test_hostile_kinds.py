"""Tables, workbooks, slides, e-mails, books, RTF, ODT and RST open nothing else, and keep to the bounds."""

from __future__ import annotations

import socket
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hallulab.scenarios.errors import UsageError
from hallulab.scenarios.packs.conversion import Conversion
from hallulab.scenarios.packs.kinds import KINDS, parts
from tests.scenarios.packs.all_kinds import NAMES, add_part, build_document, replace_in
from tests.scenarios.packs.reading_time import measure_reading

PARTS = {
    "budget.xlsx": ("xl/worksheets/sheet3.xml", "<worksheet ", "March (closed)"),
    "training.pptx": ("ppt/slides/slide1.xml", "<p:sld ", "Before you begin"),
    "report.odt": ("content.xml", "<office:document-content ", "Cash box"),
    "handbook.epub": ("OEBPS/text/b.xhtml", "<html ", "What you need"),
    "letter.docx": ("word/document.xml", "<w:document ", "Letter to the parents"),
}
"""Document → a part of it, the beginning of its root, and a text of a part."""

WORD = ("word/document.xml", "<w:document ", "<w:body>")
STRINGS = ("xl/sharedStrings.xml", "<sst ", "March (closed)")


def read(name: str, content: bytes) -> str:
    """Return what a document says, or the reason that it does not."""
    try:
        return KINDS[Path(name).suffix].read(content).text
    except Exception as error:  # noqa: BLE001 - the packages raise nearly any
        return str(error)


def declare(name: str, definition: str) -> bytes:
    """Return a document with a definition of the entity `e` in a part, which a text of it uses."""
    part, root, text = STRINGS if name == "budget.xlsx" else PARTS[name]
    return replace_in(name, part, (root, f"<!DOCTYPE d [{definition}]>{root}"), (text, f"{text} &e;"))


@pytest.mark.parametrize("name", PARTS)
def test_entities_open_no_files(name: str, tmp_path: Path) -> None:
    (tmp_path / "secret.txt").write_text("canary")
    said = read(name, declare(name, f'<!ENTITY e SYSTEM "file://{tmp_path}/secret.txt">'))
    assert said
    assert "canary" not in said


@pytest.mark.parametrize("name", PARTS)
def test_entities_of_entities_are_not_unfolded(name: str) -> None:
    laughs = "<!ENTITY a0 'ha'>" + "".join(f"<!ENTITY a{n} '{f'&a{n - 1};' * 10}'>" for n in range(1, 8))
    assert read(name, declare(name, laughs + "<!ENTITY e '&a7;'>")).count("ha") < 100


@pytest.mark.parametrize("name", PARTS)
def test_an_archive_that_unpacks_to_far_more_is_refused(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(parts, "LARGEST_UNPACKED", 1000)
    assert "bytes unpacked, more than 1,000" in read(name, build_document(name))


@pytest.mark.parametrize("name", PARTS)
def test_an_old_or_encrypted_file_by_a_new_name_is_told(name: str) -> None:
    told = read(name, b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1" + bytes(1000))
    assert told.startswith("it has a password, or is of ")


RST_SPIES = (
    ".. include:: {0}",
    ".. raw:: html\n   :file: {0}",
    ".. raw:: html\n   :url: file://{0}",
    ".. csv-table::\n   :file: {0}",
    ".. csv-table::\n   :url: file://{0}",
    ".. code::\n   :file: {0}",
    ".. literalinclude:: {0}",
    ".. image:: {0}\n   :loading: embed",
    ".. figure:: {0}\n   :loading: embed",
    ".. raw:: html\n\n   <p>canary</p>",
    ".. role:: raw-html(raw)\n   :format: html\n\n:raw-html:`<p>canary</p>`",
)


@pytest.mark.parametrize("source", RST_SPIES)
def test_restructured_text_reads_no_other_file_and_no_raw_parts(source: str, tmp_path: Path) -> None:
    secret = tmp_path / "secret.svg"
    secret.write_text("<svg><text>canary</text></svg>")
    said = read("a.rst", f"Fees\n\n{source.format(secret)}\n\nFive.\n".encode())
    assert said.strip().startswith("Fees")
    assert "<text>" not in said
    assert "canary" not in said.replace("<p>canary</p>", "")


def test_no_kind_asks_the_network(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*given: object, **named: object) -> None:
        raise AssertionError("a document asked the network")

    monkeypatch.setattr(socket, "socket", refuse)
    monkeypatch.setattr(socket, "create_connection", refuse)
    own = [name for name in NAMES if Path(name).suffix in KINDS]
    assert len([KINDS[Path(name).suffix].read(build_document(name)) for name in own]) == 20
    page = b"Content-Type: text/html\n\n<img src='http://x.example/a.png'><link href=//x.example>Hi"
    assert KINDS[".eml"].read(page).text == "Hi"


def test_macros_are_told_and_not_read() -> None:
    found = KINDS[".xlsm"].read(add_part("budget.xlsx", "xl/vbaProject.bin", "Sub Auto_Open()"))
    assert found.notes[0] == "its macros were not read"
    assert "Auto_Open" not in found.text


@st.composite
def damaged(draw: st.DrawFn) -> tuple[str, bytes]:
    """One of the twenty documents, with bytes of it, or of a part of it, replaced by others."""
    name = draw(st.sampled_from([name for name in NAMES if Path(name).suffix in KINDS]))
    content = build_document(name)
    if content.startswith(b"PK") and draw(st.booleans()):
        part, start, text = STRINGS if name == "budget.xlsx" else PARTS.get(name, WORD)
        shown = draw(st.sampled_from([start, text]))
        return name, replace_in(name, part, (shown, draw(st.text(max_size=40))))
    place = draw(st.integers(0, len(content)))
    return name, content[:place] + draw(st.binary(max_size=40)) + content[place + draw(st.integers(0, 40)) :]


@pytest.fixture(scope="module")
def process() -> Iterator[Conversion]:
    with Conversion() as process:
        yield process


@given(damaged())
@settings(max_examples=60, deadline=None)
def test_a_damaged_document_is_read_or_one_sentence(process: Conversion, document: tuple[str, bytes]) -> None:
    name, content = document
    try:
        said = process.read(Path(name), content).text and "read"
    except UsageError as error:
        said = str(error)
    told = f"{name}: cannot be read as {KINDS[Path(name).suffix].name} ("
    assert said in ("", "read") or (said.startswith(told) and "\n" not in said)


MAIL = "Content-Type: multipart/mixed; boundary=b{0}\n\n--b{0}\n"

HOSTILE: dict[str, Callable[[], bytes]] = {
    "quotes.csv": lambda: b'"' * 300_001,
    "columns.csv": lambda: b"a," * 300_000,
    "rows.csv": lambda: b"a,b\n" * 100_000,
    "wide.csv": lambda: b"a\n" * 20_000 + b"," * 20_000 + b"x",
    "lists.odt": lambda: _nest("report.odt", "<text:list><text:list-item>", "</text:list-item></text:list>"),
    "groups.pptx": lambda: _nest("training.pptx", "<p:grpSp>", "</p:grpSp>"),
    "pages.epub": lambda: _nest("handbook.epub", "<div>", "</div>"),
    "merged.xlsx": lambda: replace_in("budget.xlsx", PARTS["budget.xlsx"][0], ("A2:A3", "A2:XFD1048576")),
    "parts.eml": lambda: "".join(MAIL.format(n) for n in range(5_000)).encode(),
    "subject.eml": lambda: b"Subject: " + b"=?utf-8?q?=" * 20_000 + b"\n\nHi",
    "to.eml": lambda: b"To: " + b"(" * 50_000 + b"\n\nHi",
    "groups.rtf": lambda: b"{\\rtf1" + b"{" * 300_000,
    "words.rtf": lambda: b"{\\rtf1 " + b"\\u8364?" * 50_000,
    "styles.rtf": lambda: b"{\\rtf1 " + b"{\\s1 " * 50_000,
    "fonts.rtf": lambda: b"{\\rtf1 " + b"{\\f1\\fcharset" * 30_000,
    "quotes.rst": lambda: b"".join(b" " * n + b"a\n\n" for n in range(700)),
    "lists.rst": lambda: b"* " * 50_000,
    "marks.rst": lambda: b"*a `b |c " * 30_000,
    "substitutions.rst": lambda: (
        b"|a9|\n\n.. |a0| replace:: ha\n"
        + b"".join(b".. |a%d| replace:: %b\n" % (n, b"|a%d| " % (n - 1) * 10) for n in range(1, 10))
    ),
}
"""What the parsers are made to be slow, deep, large or endless by."""


def _nest(name: str, start: str, end: str) -> bytes:
    part, _, text = PARTS[name]
    return replace_in(name, part, (text, start * 30_000 + end * 30_000))


@pytest.mark.slow
@pytest.mark.parametrize("name", HOSTILE)
def test_a_hostile_document_is_read_or_refused_within_its_bounds(name: str) -> None:
    content = HOSTILE[name]()
    assert measure_reading(name, content) < 5 + 20 * len(content) / 1e6 + 2
