"""A run until it is decided goes on after a kill, wherever that came, as if it had not been killed."""

from __future__ import annotations

import json
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import yaml

from hallulab.testing.scripted import ScriptedModel
from tests.kit import forked_runs
from tests.kit.kill_points import AfterReport, InLine, InReport, Place, count_differences, journal_lines
from tests.kit.planted_rates import make_crowd, make_planted_script
from tests.simulator.decide.planted_run import experiment_between, read_decision

RATES = {"careful": 0.0, "same": 0.0, "careless": 2.0}
BATCH_LINES = 24
"""Of a batch of four personas: a conversation with each of three chatbots, and a verdict on it."""


@dataclass(frozen=True)
class Resumed:
    """What a run is that was killed and went on."""

    ended: int
    """Exit code of the process that was killed."""
    differences: tuple[int, int]
    """Lines that the resumed run lacks, and that it has too often."""
    decision: dict[str, Any]
    """What it decided."""
    experiment: str
    """Its experiment.json."""


def record(folder: Path) -> list[str]:
    """Record a run; return the command that replays it."""
    experiment = folder / "experiment.yaml"
    until = {"budget": "16 personas"}
    asked = experiment_between(RATES, make_crowd(folder / "pack", 16), until_decided=until)
    experiment.write_text(yaml.safe_dump(asked))
    with ScriptedModel(make_planted_script(RATES)) as model:
        command = ["run", "-c", str(experiment), "--model", model.name, "--base-url", model.base_url, "-q"]
        at_model = [*command, "--record", str(folder / "recorded.jsonl")]
        assert forked_runs.run_here(at_model, folder / "recorded").code == 0
    replaying = [*command, "--replay", str(folder / "recorded.jsonl")]
    assert forked_runs.run_here(replaying, folder / "whole").code == 0
    return replaying


def kill_and_resume(command: list[str], folder: Path, place: Place) -> Resumed:
    run = folder / "killed" / repr(place)
    run.parent.mkdir(exist_ok=True)
    process = forked_runs.start(command, run, place.end_there)
    process.join()
    assert forked_runs.run(command, run).code == 0
    differences = count_differences(run, journal_lines(folder / "whole"))
    return Resumed(
        process.exitcode or 0, differences, read_decision(run), (run / "experiment.json").read_text()
    )


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("kills")


@pytest.fixture(scope="module")
def driver(folder: Path) -> Iterator[tuple[ProcessPoolExecutor, list[str]]]:
    """A process to fork from, and the command that it has run."""
    with forked_runs.driver() as process:
        yield process, process.submit(record, folder).result()


@pytest.mark.parametrize(
    "place",
    [
        pytest.param(InReport("experiment.json", 0.5), id="before the first batch"),
        pytest.param(InLine(5, 0.5), id="within the first batch", marks=pytest.mark.slow),
        pytest.param(InLine(BATCH_LINES - 1, 1.0), id="behind the first batch", marks=pytest.mark.slow),
        pytest.param(InLine(BATCH_LINES, 0.0), id="before the second batch"),
        pytest.param(
            InLine(3 * BATCH_LINES + 2, 0.5),
            id="within the last batch, which lacks a chatbot",
            marks=pytest.mark.slow,
        ),
        pytest.param(AfterReport("report.json"), id="after the decision"),
    ],
)
def test_a_killed_run_comes_to_the_same_decision(
    driver: tuple[ProcessPoolExecutor, list[str]], folder: Path, place: Place
) -> None:
    process, command = driver
    found = process.submit(kill_and_resume, command, folder, place).result()
    assert found.ended == -9
    assert found.differences == (0, 0)
    assert found.decision == read_decision(folder / "whole")
    assert found.experiment == (folder / "whole" / "experiment.json").read_text()
    assert found.decision["found"]["asked"] == {"careful": 16, "same": 16, "careless": 12}


@pytest.mark.slow
def test_workers_come_to_the_same_decision(
    driver: tuple[ProcessPoolExecutor, list[str]], folder: Path
) -> None:
    process, command = driver
    ended = process.submit(forked_runs.run_here, [*command, "--workers", "2"], folder / "workers").result()
    assert ended.code == 0
    verdicts = [journal_lines(folder / name)["verdicts.jsonl"] for name in ("workers", "whole")]
    assert verdicts[0] == verdicts[1]  # workers search with vectors, so scores of passages differ
    assert read_decision(folder / "workers") == read_decision(folder / "whole")


def test_the_recording_is_whole(driver: tuple[ProcessPoolExecutor, list[str]], folder: Path) -> None:
    assert json.loads((folder / "whole" / "experiment.json").read_text())["drawn"]["of"] == 16
    held = journal_lines(folder / "whole")
    assert sum(held[name].total() for name in held) == 4 * BATCH_LINES - 8
