"""Commands on a run whose journals are in shards do what they do on one with one journal of each kind."""

from __future__ import annotations

from pathlib import Path

import pytest

from hallulab.results import Run
from hallulab.simulator.records.folder import RunFolder
from hallulab.simulator.records.journal_files import list_shards
from hallulab.simulator.report.shards import count_part
from hallulab.testing.scripted import ScriptedModel
from hallulab.testing.tiny_pack import make_pack, words_for_vectors
from tests.simulator.command_line import CommandLine


@pytest.fixture
def runs(
    tmp_path: Path, hallulab: CommandLine, monkeypatch: pytest.MonkeyPatch
) -> tuple[RunFolder, RunFolder]:
    """The same run in one journal, and in shards, from which lines were lost before the run went on."""
    monkeypatch.setattr(
        "hallulab.simulator.report.shards._count_each", lambda shards: [*map(count_part, shards)]
    )
    one, shards = RunFolder(tmp_path / "one"), RunFolder(tmp_path / "shards")
    pack = make_pack(tmp_path / "pack")
    ann = (pack / "personas.yaml").read_text()
    more = (ann.removeprefix("personas:\n").replace("id: ann", f"id: {name}") for name in ("bea", "cyd"))
    (pack / "personas.yaml").write_text("".join((ann, *more)))
    with words_for_vectors(), ScriptedModel(lambda request: "The water boils.") as model:
        words = (
            *("run", "--scenario", pack, "--model", model.name, "--base-url", model.base_url, "--quiet"),
            *("--chatbots", "vanilla", "--detectors", "lexical", "--min-turns", "1", "--max-turns", "1"),
        )
        assert hallulab(*words, "--out", one.path).code == 0
        monkeypatch.setattr("hallulab.simulator.records.folder.LARGEST", 0)
        assert hallulab(*words, "--out", shards.path).code == 0
        held = next(path for path in list_shards(shards.verdicts) if path.stat().st_size)
        held.write_text("")
        assert hallulab(*words, "--out", shards.path).code == 0
    return one, shards


@pytest.mark.slow
def test_a_run_in_shards_goes_on_is_judged_exported_and_read_as_another(
    runs: tuple[RunFolder, RunFolder], hallulab: CommandLine
) -> None:
    one, shards = runs
    assert (one.is_in_shards, shards.is_in_shards) == (False, True)
    for run in runs:
        assert hallulab("detect", run.path, "--detectors", "evidence-chain-bm25", "--quiet").code == 0
        out = run.path.parent / f"{run.path.name}.jsonl"
        assert hallulab("export", run.path, "--detector", "lexical", "--out", out).code == 0
    assert one.table.read_bytes() == shards.table.read_bytes()
    lines = [
        sorted((one.path.parent / f"{name}.jsonl").read_text().splitlines()) for name in ("one", "shards")
    ]
    assert lines[0] == lines[1]
    first, second = (Run(run.path).turns().drop(columns="seconds") for run in runs)
    assert first.equals(second)
    keys = [set(run.read_journals().keys) for run in runs]
    assert keys[0] == keys[1]
    assert len(keys[0]) == 2 * len(first) == 6
