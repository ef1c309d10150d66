"""What is read of a pack that only a run folder names: documents for the report, and once."""

from __future__ import annotations

from pathlib import Path

import pytest

from hallulab.scenarios.errors import UsageError
from hallulab.scenarios.packs import pack_files
from hallulab.scenarios.packs.goals import GoalLabel
from hallulab.scenarios.packs.pack import Document, Persona
from hallulab.simulator.records.experiment import Experiment
from hallulab.simulator.records.experiment_json import SavedExperiment
from hallulab.simulator.report.facts import collect_labels, get_personas
from hallulab.simulator.report.shards import count_part
from hallulab.simulator.report.write import write_reports
from hallulab.testing.tiny_pack import make_pack
from tests.simulator.sharded import make_run


@pytest.fixture
def read(monkeypatch: pytest.MonkeyPatch) -> list[Path]:
    """The folders of documents that are read; each is refused."""
    folders: list[Path] = []

    def refuse(folder: Path, *others: object, **options: object) -> tuple[Document, ...]:
        folders.append(folder)
        raise UsageError(f"{folder}/bomb.docx: cannot be read.")

    monkeypatch.setattr(pack_files, "read_documents", refuse)
    return folders


def saved(pack: Path) -> SavedExperiment:
    return SavedExperiment(
        experiment=Experiment(scenario=str(pack), chatbots=("vanilla",)), identity={}, detectors={}
    )


def test_labels_are_found_by_persona_and_goal() -> None:
    given = {"goals": ["a", {"goal": "b", "expect": "answer"}], "messages": ["When?"]}
    people = [Persona.model_validate({"id": id, **given}) for id in ("ann", "bea")]
    answer = GoalLabel(expect="answer")
    assert collect_labels(people) == {("ann", "b"): answer, ("bea", "b"): answer}


def test_personas_are_read_without_the_documents(tmp_path: Path, read: list[Path]) -> None:
    assert list(get_personas(saved(make_pack(tmp_path / "pack")), None)) == ["ann"]
    assert read == []


@pytest.mark.parametrize("in_shards", [False, True])
def test_a_report_tries_documents_once(
    in_shards: bool, tmp_path: Path, read: list[Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(
        "hallulab.simulator.report.shards._count_each", lambda shards: [*map(count_part, shards)]
    )
    run = make_run(tmp_path / "run", 1, in_shards=in_shards)
    pack = make_pack(tmp_path / "pack")
    run.write_experiment(saved(pack))
    assert write_reports(run).unknown_personas[0] == "p0"
    assert read == [pack / "documents"]
