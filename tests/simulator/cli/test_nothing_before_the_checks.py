"""A command that is refused has written nothing: every check comes before the first write."""

from __future__ import annotations

import sys
from pathlib import Path
from unittest.mock import patch

import pytest

from hallulab.scenarios.files.json_text import read_placed_lines
from hallulab.scenarios.packs import conversion
from hallulab.scenarios.packs.documents import read_documents
from hallulab.simulator.records.folder import RunFolder
from hallulab.testing.tiny_pack import URL, flags, make_pack
from tests.builders import conversation, scored
from tests.kit.run_folders import write_run
from tests.simulator.command_line import CodeAndError

NOT_JSON = "not valid JSON (Expecting value: line 1 column 1 (char 0)). Correct or delete the line."


def written(folder: Path) -> dict[Path, bytes]:
    """Every file below a folder, and what it holds."""
    return {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}


@pytest.fixture
def damaged(tmp_path: Path) -> RunFolder:
    """A run folder without experiment.json, whose conversations are whole and whose verdicts are not."""
    held = conversation("c", ["A."], scenario="pregnancy-medication")
    folder = write_run(tmp_path / "run", [held])
    folder.verdicts.write_text("damaged\n")
    return folder


@pytest.mark.parametrize("command", [("report",), ("export", "--out", "out")], ids=" ".join)
def test_what_reads_a_damaged_journal_writes_nothing(
    code_and_error: CodeAndError,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    damaged: RunFolder,
    command: tuple[str, ...],
) -> None:
    monkeypatch.chdir(tmp_path)
    before = written(tmp_path)
    assert code_and_error(*command, damaged.path) == (2, f"error: {damaged.verdicts}, line 1: {NOT_JSON}\n")
    assert written(tmp_path) == before


def test_a_report_that_contradicts_itself_is_refused_first(
    code_and_error: CodeAndError, tmp_path: Path, damaged: RunFolder
) -> None:
    doubled = [scored("c", 0), scored("c", 0).model_copy(update={"version": "2"})]
    write_run(damaged.path, damaged.read_conversations(), doubled)
    before = written(tmp_path)
    assert code_and_error("report", damaged.path)[0] == 2
    assert written(tmp_path) == before


@pytest.mark.parametrize("of_run", [False, True])
def test_a_damaged_journal_is_refused_first(
    code_and_error: CodeAndError, tmp_path: Path, damaged: RunFolder, of_run: bool
) -> None:
    recording = tmp_path / "recording.jsonl"
    before = written(tmp_path)
    command = ("detect", damaged.path, "--detectors", "lexical", "--record", recording, "--quiet")
    if of_run:
        # The next thing that it would do is to ask an endpoint that is not there.
        pack = make_pack(tmp_path / "pack")
        before = written(tmp_path)
        command = (*flags(pack, "--out", damaged.path, "--record", recording),)
    assert code_and_error(*command) == (2, f"error: {damaged.verdicts}, line 1: {NOT_JSON}\n")
    assert written(tmp_path) == before


def test_a_fresh_start_that_is_refused_deletes_nothing(
    code_and_error: CodeAndError, tmp_path: Path, damaged: RunFolder
) -> None:
    pack = make_pack(tmp_path / "pack")
    replay = tmp_path / "replay.jsonl"
    replay.write_text('{"kind":"other","key":"another","answer":1}\n')
    before = written(tmp_path)
    code, said = code_and_error(
        *flags(pack, "--out", damaged.path, "--replay", replay, "--fresh", "--personas", "nobody")
    )
    assert (code, "nobody" in said) == (2, True)
    assert written(tmp_path) == before


def test_an_empty_journal_is_refused_first(
    code_and_error: CodeAndError, tmp_path: Path, damaged: RunFolder
) -> None:
    damaged.verdicts.write_text("")
    assert code_and_error("detect", damaged.path, "--detectors", "lexical", "--quiet")[0] == 0
    damaged.conversations.write_text("")
    damaged.verdicts.write_text("")
    before = written(tmp_path)
    assert code_and_error("detect", damaged.path, "--detectors", "lexical,d", "--quiet")[0] == 2
    assert code_and_error("detect", damaged.path, "--detectors", "lexical", "--quiet") == (
        2,
        f"error: {damaged.conversations} is empty: there is nothing to judge yet.\n",
    )
    assert written(tmp_path) == before


def test_journals_are_read_before_and_after_judging_and_the_pack_once(
    code_and_error: CodeAndError, tmp_path: Path, damaged: RunFolder
) -> None:
    damaged.verdicts.write_text("")
    judge = ("detect", damaged.path, "--detectors", "lexical", "--quiet")
    assert code_and_error(*judge)[0] == 0
    with (
        patch("hallulab.simulator.records.journal_lines.read_placed_lines", wraps=read_placed_lines) as lines,
        patch("hallulab.scenarios.packs.pack_files.read_documents", wraps=read_documents) as packs,
    ):
        assert code_and_error(*judge)[0] == 0
    both = [damaged.verdicts, damaged.conversations]
    again = damaged.path / "again.jsonl"
    assert [call.args[0] for call in lines.mock_calls] == [*both, *both, again]
    assert packs.call_count == 1


@pytest.mark.parametrize("command", [("bench",), ("init-scenario", "--summarize")], ids=" ".join)
def test_a_recording_is_not_begun_by_a_command_that_is_refused(
    code_and_error: CodeAndError, tmp_path: Path, command: tuple[str, ...]
) -> None:
    given = tmp_path / "given.jsonl"
    given.write_text(
        '{"reply": "A.", "passages": ["A."], "label": false}\n'
        if command[0] == "bench"
        else '{"role": "user", "content": "Hi"}\n{"role": "assistant", "content": "Hello."}\n'
    )
    before = written(tmp_path)
    more = (
        ("--detectors", "direct-judge", "--json", tmp_path / "numbers.json") if command[0] == "bench" else ()
    )
    code, said = code_and_error(
        *(*command, given, *more, "--record", tmp_path / "r.jsonl", "--model", "m", "--quiet"),
        *("--base-url", URL, "--api-key-env", "NOT_SET_ANYWHERE"),
    )
    assert code == 2
    assert "NOT_SET_ANYWHERE" in said
    assert written(tmp_path) == before


@pytest.mark.parametrize(
    "name", ["conversations.jsonl", "experiment.json", "verdicts-03.jsonl", "audit.jsonl", "chat"]
)
def test_a_recording_does_not_take_the_place_of_a_file_of_the_run(
    code_and_error: CodeAndError, tmp_path: Path, name: str
) -> None:
    pack = make_pack(tmp_path / "pack")
    before = written(tmp_path)
    run = tmp_path / "run"
    record = run / ("conversations.jsonl" if name == "chat" else name)
    models = ("--base-url", URL, "--model", "m", "--api-key-env", "NOT_SET_ANYWHERE")
    command = ("chat", "--out", run, *models) if name == "chat" else flags(pack, "--out", run)
    assert code_and_error(*command, "--record", record) == (
        2,
        f"error: --record {record}: the run folder keeps a file of its own there. Give another file.\n",
    )
    assert written(tmp_path) == before


@pytest.mark.skipif(sys.platform == "darwin", reason="macOS has no limit of memory")
def test_a_document_that_breaks_its_bounds_is_named_and_nothing_is_written(
    code_and_error: CodeAndError, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pack = make_pack(tmp_path / "pack")
    (pack / "documents" / "large.csv").write_bytes(b"a,b\n" * 600_000)
    monkeypatch.setattr(conversion, "MEMORY", 48 << 20)
    before = written(tmp_path)
    assert code_and_error(*flags(pack, "--out", tmp_path / "run")) == (
        2,
        f"error: {pack}/documents/large.csv: cannot be read as CSV table "
        "(it takes more than 48 MiB of memory). Convert it to text, or remove it.\n",
    )
    assert written(tmp_path) == before
