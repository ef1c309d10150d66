"""Documents that are made to take memory or time are refused in one sentence, and no process is left."""

from __future__ import annotations

import io
import signal
import struct
import subprocess
import sys
import zipfile
import zlib
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import psutil
import pytest

from hallulab.scenarios.errors import OperationalError, UsageError
from hallulab.scenarios.packs import conversion
from hallulab.scenarios.packs.conversion import Conversion
from hallulab.scenarios.packs.pack_files import load_scenario, load_without_documents
from hallulab.testing.tiny_pack import make_pack
from tests.kit.refusals import refusal
from tests.scenarios.packs.pdf_files import write_pdf
from tests.scenarios.packs.reading_time import measure_reading

PAGE = (Path("page.html"), b"<p>Ten cents a day.</p>")


def word(body: str, head: str = "") -> bytes:
    written = io.BytesIO()
    name = "http://schemas.openxmlformats.org/wordprocessingml/2006/main"
    with zipfile.ZipFile(written, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr(
            "word/document.xml", f'{head}<w:document xmlns:w="{name}"><w:body>{body}</w:body></w:document>'
        )
    return written.getvalue()


EMPTY_PARAGRAPHS = (Path("bomb.docx"), word("<w:p/>" * 450_000))
"""4 kB that take 21 s and 500 MB."""

LARGE = (Path("large.csv"), b"a,b\n" * 600_000)
"""2.4 MB whose rows do not fit into 48 MiB."""


def list_readers() -> list[psutil.Process]:
    """The processes of ours that read documents; other tests may have left others."""
    script = conversion.conversion_worker.__file__
    return [one for one in psutil.Process().children() if script in one.cmdline()]


def refused(path: Path, content: bytes) -> str:
    with Conversion() as process:
        return refusal(process.read, path, content)


limits_memory = pytest.mark.skipif(sys.platform == "darwin", reason="macOS has no limit of memory")


@limits_memory
def test_a_document_that_takes_too_much_memory_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(conversion, "MEMORY", 48 << 20)
    assert refused(*LARGE) == (
        "large.csv: cannot be read as CSV table (it takes more than 48 MiB of memory). "
        "Convert it to text, or remove it."
    )


def test_a_document_that_takes_too_much_processor_time_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(conversion, "FIRST_SECONDS", 0.5)
    assert refused(*EMPTY_PARAGRAPHS) == (
        "bomb.docx: cannot be read as Word document (it takes more than 1 s of processor time). "
        "Convert it to text, or remove it."
    )


def test_a_process_that_says_nothing_is_not_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(conversion, "PATIENCE_S", 0.0)
    monkeypatch.setattr(conversion, "PATIENCE_TIMES", 0.0)
    assert refused(*EMPTY_PARAGRAPHS) == (
        "bomb.docx: cannot be read as Word document (no text within 0 s). Convert it to text, or remove it."
    )


@pytest.mark.parametrize(
    "said",
    ["", "garbage\n", "[]\n", "{}\n", '{"bytes": 4}\nabc', '{"bytes": -1}\n', '{"bytes": 3}\n\xff\xff\xff'],
)
def test_a_process_that_breaks_the_protocol_gives_one_sentence(
    said: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    worker = tmp_path / "worker.py"
    worker.write_text(
        f"import sys; sys.stdout.buffer.write({said.encode('latin-1')!r}); sys.stdout.flush(); "
        "sys.stdin.read()"
    )
    monkeypatch.setattr(conversion, "PATIENCE_S", 0.3)
    monkeypatch.setattr(conversion, "PATIENCE_TIMES", 0.0)
    monkeypatch.setattr(conversion.conversion_worker, "__file__", str(worker))
    assert refused(*PAGE).startswith("page.html: cannot be read as HTML (")


def test_a_crash_of_the_process_is_one_sentence(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    worker = tmp_path / "worker.py"
    worker.write_text("import os; os.abort()")
    monkeypatch.setattr(conversion.conversion_worker, "__file__", str(worker))
    assert "(its reader ended with code -6)" in refused(*PAGE)


def test_a_process_that_does_not_start_is_one_sentence(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(conversion.sys, "executable", "/nothing")
    told = r"^cannot start a process that reads documents \(No such file or directory\)\.$"
    with Conversion() as process, pytest.raises(OperationalError, match=told):
        process.read(*PAGE)


def test_one_process_reads_all_documents_and_has_no_key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "canary")
    with Conversion() as process:
        assert [process.read(*PAGE).text for _ in range(3)] == ["Ten cents a day."] * 3
        (one,) = list_readers()
        assert "OPENAI_API_KEY" not in one.environ()
    assert not one.is_running()


@limits_memory
def test_after_a_document_that_broke_its_bounds_others_are_read(monkeypatch: pytest.MonkeyPatch) -> None:
    with Conversion() as process:
        monkeypatch.setattr(conversion, "MEMORY", 48 << 20)
        with pytest.raises(UsageError):
            process.read(*LARGE)
        monkeypatch.undo()
        assert process.read(*PAGE).text == "Ten cents a day."


def test_no_process_is_left_when_a_command_is_interrupted() -> None:
    def read() -> None:
        with Conversion() as process:
            process.read(*PAGE)
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        read()
    assert list_readers() == []


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_a_signal_to_the_group_leaves_the_process_to_ours(number: signal.Signals) -> None:
    with Conversion() as process:
        process.read(*PAGE)
        (one,) = list_readers()
        one.send_signal(number)
        assert process.read(*PAGE).text == "Ten cents a day."
        assert list_readers() == [one]


def test_a_process_that_reads_ends_when_ours_is_killed() -> None:
    script = """
import os, signal, threading
from hallulab.scenarios.packs.conversion import Conversion
from tests.scenarios.packs.test_conversion import EMPTY_PARAGRAPHS, PAGE
with Conversion() as process:
    process.read(*PAGE)
    threading.Thread(target=process.read, args=EMPTY_PARAGRAPHS, daemon=True).start()
    print(process._started.pid, flush=True)
    os.kill(os.getpid(), signal.SIGKILL)
"""
    killed = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False)
    assert killed.returncode == -9
    with suppress(psutil.NoSuchProcess):
        psutil.Process(int(killed.stdout)).wait(60)


def test_markdown_and_text_need_no_process(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(conversion.sys, "executable", "/nothing")
    assert len(load_scenario(make_pack(tmp_path / "pack")).documents) == 1


def test_a_pack_without_documents_opens_none_of_them(tmp_path: Path) -> None:
    pack = make_pack(tmp_path / "pack")
    (pack / "documents" / EMPTY_PARAGRAPHS[0]).write_bytes(EMPTY_PARAGRAPHS[1])
    found = load_without_documents(pack)
    assert (found.name, found.documents, [one.id for one in found.personas]) == ("tiny", (), ["ann"])


def pages(content: bytes, number: int = 1) -> bytes:
    packed = zlib.compress(content, 9)
    return write_pdf(
        b"<</Type/Catalog/Pages 2 0 R>>",
        b"<</Type/Pages/Kids[" + b"3 0 R " * number + b"]/Count %d>>" % number,
        b"<</Type/Page/Parent 2 0 R/Contents 4 0 R/Resources<</Font<</F1 5 0 R>>>>>>",
        b"<</Length %d/Filter/FlateDecode>>stream\n%b\nendstream" % (len(packed), packed),
        b"<</Type/Font/Subtype/Type1/BaseFont/Helvetica>>",
    )


def entries(number: int) -> bytes:
    written = io.BytesIO(word("<w:p/>"))
    with zipfile.ZipFile(written, "a") as archive:
        for index in range(number):
            archive.writestr(f"x{index}", "")
    return written.getvalue()


def lying(content: bytes) -> bytes:
    """A Word file whose table of contents tells of 100 bytes."""
    place = content.rindex(b"PK\x01\x02") + 24
    return content[:place] + struct.pack("<I", 100) + content[place + 4 :]


LAUGHS = "".join(f"<!ENTITY a{n} '{f'&a{n - 1};' * 10}'>" for n in range(1, 12))

HOSTILE: dict[str, Callable[[], bytes]] = {
    "nested.docx": lambda: word("<w:p>" * 100_000 + "</w:p>" * 100_000),
    "tables.docx": lambda: word("<w:tbl><w:tr><w:tc>" * 30_000 + "</w:tc></w:tr></w:tbl>" * 30_000),
    "entities.docx": lambda: word("&a11;", f"<!DOCTYPE l [{LAUGHS}]>"),
    "entries.docx": lambda: entries(20_000),
    "lying.docx": lambda: lying(word("<w:p/>" * 2_000_000)),
    "long.docx": lambda: word("<w:p><w:r><w:t>" + "a " * 50_000_000 + "</w:t></w:r></w:p>"),
    "nested.html": lambda: b"<div>" * 100_000 + b"x",
    "paragraphs.html": lambda: b"<p>x" * 100_000,
    "quotes.html": lambda: b"<blockquote>" * 300 + b"x\n" * 3000,
    "comments.html": lambda: b"<!--" * 30_000,
    "tags.html": lambda: b"<a " * 30_000,
    "references.html": lambda: b"&#x" * 300_000,
    "spaces.html": lambda: b"<p>" + b" " * 300_000 + b"x",
    "columns.html": lambda: b"<table><tr><td colspan=1000000000>x</td></tr></table>",
    "numbers.html": lambda: b"<ol start=99999999999999999999>" + b"<li>x" * 20_000,
    "operators.pdf": lambda: pages(b"BT /F1 12 Tf " + b"(a) Tj " * 3_000_000 + b"ET"),
    "arrays.pdf": lambda: pages(b"[" * 1_000_000),
    "pages.pdf": lambda: pages(b"BT /F1 12 Tf " + b"(a) Tj " * 1000 + b"ET", 20_000),
    "loop.pdf": lambda: write_pdf(
        b"<</Type/Catalog/Pages 2 0 R>>", b"<</Type/Pages/Kids[2 0 R 2 0 R]/Count 9>>"
    ),
    "dictionaries.pdf": lambda: write_pdf(b"<</A" * 50_000),
    "streams.pdf": lambda: pages(zlib.compress(b"\0" * 300_000_000, 9)),
}
"""What the parsers are made to be slow, deep, large or endless by."""


@pytest.mark.slow
@pytest.mark.parametrize("name", HOSTILE)
def test_a_hostile_document_is_read_or_refused_within_its_bounds(name: str) -> None:
    content = HOSTILE[name]()
    assert measure_reading(name, content) < 5 + 20 * len(content) / 1e6 + 2
