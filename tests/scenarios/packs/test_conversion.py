"""Documents that are made to take memory or time are refused in one sentence, and no process is left."""

from __future__ import annotations

import io
import zipfile
from pathlib import Path

import psutil
import pytest

from hallulab.scenarios.errors import OperationalError, UsageError
from hallulab.scenarios.packs import conversion
from hallulab.scenarios.packs.conversion import Conversion
from hallulab.scenarios.packs.pack_files import load_scenario
from hallulab.testing.tiny_pack import make_pack

PAGE = (Path("page.html"), b"<p>Ten cents a day.</p>")


def word(body: str) -> bytes:
    written = io.BytesIO()
    name = "http://schemas.openxmlformats.org/wordprocessingml/2006/main"
    with zipfile.ZipFile(written, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr(
            "word/document.xml", f'<w:document xmlns:w="{name}"><w:body>{body}</w:body></w:document>'
        )
    return written.getvalue()


EMPTY_PARAGRAPHS = (Path("bomb.docx"), word("<w:p/>" * 450_000))
"""4 kB that take 21 s and 500 MB."""

LARGE = (Path("large.html"), b"<br>" * 60_000)
"""240 kB that take 80 MB."""


def refused(path: Path, content: bytes) -> str:
    with Conversion() as process, pytest.raises(UsageError) as error:
        process.read(path, content)
    return str(error.value)


def test_a_document_that_takes_too_much_memory_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(conversion, "MEMORY", 48 << 20)
    assert refused(*LARGE) == (
        "large.html: cannot be read as HTML (it takes more than 48 MiB of memory). "
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
        assert [process.read(*PAGE) for _ in range(3)] == ["Ten cents a day."] * 3
        (one,) = psutil.Process().children()
        assert "OPENAI_API_KEY" not in one.environ()
    assert not one.is_running()


def test_after_a_document_that_broke_its_bounds_others_are_read(monkeypatch: pytest.MonkeyPatch) -> None:
    with Conversion() as process:
        monkeypatch.setattr(conversion, "MEMORY", 48 << 20)
        with pytest.raises(UsageError):
            process.read(*LARGE)
        monkeypatch.undo()
        assert process.read(*PAGE) == "Ten cents a day."


def test_no_process_is_left_when_a_command_is_interrupted() -> None:
    def read() -> None:
        with Conversion() as process:
            process.read(*PAGE)
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        read()
    assert psutil.Process().children() == []


def test_markdown_and_text_need_no_process(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(conversion.sys, "executable", "/nothing")
    assert len(load_scenario(make_pack(tmp_path / "pack")).documents) == 1
