"""The evidence of a run that nobody has judged: searched when somebody annotates, views or exports it."""

from __future__ import annotations

import json
import logging
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

import hallulab
from hallulab.simulator.options.groups import ExportSelection
from hallulab.simulator.records.folder import RunFolder
from hallulab.simulator.report.export import export_run
from hallulab.simulator.report.late_evidence import find_late_evidence
from hallulab.testing.scripted import ScriptedModel
from hallulab.testing.tiny_pack import make_pack, words_for_vectors
from tests.places import ROOT


@pytest.fixture
def run(tmp_path: Path, cache: Path) -> RunFolder:
    """A simulated conversation with a bot behind an endpoint, of one turn."""
    with ScriptedModel(lambda request: "The water boils at 100 degrees.") as model:
        served = {"base_url": model.base_url, "model": model.name}
        bot = {"name": "mine", "kind": "endpoint", "options": served}
        asked = {"scenario": str(make_pack(tmp_path / "pack")), "chatbots": [bot], "max_turns": 1, **served}
        hallulab.simulate({**asked, "min_turns": 1}, out=tmp_path / "run", quiet=True)
    return RunFolder(tmp_path / "run")


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("HALLULAB_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache"


def list_documents(run: RunFolder) -> list[str]:
    return [one.document for held in run.read_conversations() for turn in held.turns for one in turn.passages]


def test_who_exports_replies_for_bench_has_their_evidence(run: RunFolder, tmp_path: Path) -> None:
    with words_for_vectors():
        export_run(run, "bench", ExportSelection(detector=None), tmp_path / "out.jsonl")
    [line] = [json.loads(line) for line in (tmp_path / "out.jsonl").read_text().splitlines()]
    assert [passage["document"] for passage in line["passages"]] == ["kettle"]
    assert list_documents(run) == ["kettle"]


def test_who_exports_without_passages_searches_none(run: RunFolder, tmp_path: Path) -> None:
    wanted = ExportSelection(detector=None, without=frozenset({"passages"}))
    export_run(run, "openai", wanted, tmp_path / "out.jsonl")
    assert list_documents(run) == []


def test_it_is_written_once(run: RunFolder) -> None:
    with words_for_vectors():
        find_late_evidence(run)
        before = run.conversations.read_bytes()
        find_late_evidence(run)
    assert run.conversations.read_bytes() == before
    assert len(before.splitlines()) == 2


def test_a_run_that_is_under_way_is_left_to_itself(run: RunFolder) -> None:
    with run.claimed():
        find_late_evidence(run)
    assert list_documents(run) == []


def test_documents_that_have_changed_are_told_and_not_searched(
    run: RunFolder, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    (tmp_path / "pack/documents/kettle.md").write_text("# The kettle\n\nIt is another one.\n")
    with caplog.at_level(logging.WARNING):
        find_late_evidence(run)
    assert list_documents(run) == []
    assert "shown without the evidence that they lack: the documents of" in caplog.text


@pytest.mark.slow  # a process of its own takes seconds; test_registry has who searches
def test_simulating_with_an_own_bot_loads_no_embedding_model(tmp_path: Path) -> None:
    make_pack(tmp_path / "pack")
    program = """
        import sys
        import hallulab
        from hallulab.testing.scripted import ScriptedModel
        with ScriptedModel(lambda request: "It boils.") as model:
            served = {"base_url": model.base_url, "model": model.name}
            bot = {"name": "mine", "kind": "endpoint", "options": served}
            asked = {"scenario": "pack", "chatbots": [bot], "min_turns": 1, "max_turns": 1, **served}
            hallulab.simulate(asked, out="run", quiet=True)
        print(*sorted({"torch", "transformers", "sentence_transformers", "lancedb"} & sys.modules.keys()))
    """
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(program)],
        cwd=tmp_path,
        env={"PYTHONPATH": str(ROOT), "HALLULAB_CACHE": str(tmp_path / "cache")},
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout.strip() == ""


def test_a_reply_without_a_query_lacks_no_evidence_and_its_folder_stays_as_it_is(run: RunFolder) -> None:
    journal = run.path / "conversations.jsonl"
    held = json.loads(journal.read_text())
    held["turns"][0]["query"] = None  # as nobody but a stranger writes it
    journal.write_text(json.dumps(held) + "\n")
    before = journal.read_bytes()
    with words_for_vectors():
        find_late_evidence(run)
    assert journal.read_bytes() == before
