"""`hallulab init`: experiment files that are valid, never overwrite, and run against an endpoint."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import get_args

import pytest

from hallulab.agents.models.endpoints import Endpoint
from hallulab.simulator.cli.files import SCHEMA_FILE, Purpose
from hallulab.simulator.cli.schemas import render_schema
from hallulab.simulator.records.experiment_file import load_experiment
from hallulab.simulator.records.folder import RunFolder
from hallulab.testing.endpoint import MODEL, serve_stub
from tests.simulator.cli.pack_writer import without_weights
from tests.simulator.command_line import CommandLine


@pytest.fixture
def endpoint() -> Iterator[str]:
    with serve_stub() as url:
        yield url


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The working directory of the commands."""
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.parametrize("purpose", get_args(Purpose))
def test_each_file_is_valid_and_names_the_schema_beside_it(
    hallulab: CommandLine, here: Path, purpose: str
) -> None:
    ended = hallulab("init", "--for", purpose)
    assert (ended.code, ended.out) == (
        0,
        "experiment.yaml: read and edit it, then `hallulab run -c experiment.yaml`\n",
    )
    text = (here / "experiment.yaml").read_text()
    assert re.findall(r"\$schema=(.*)", text.splitlines()[0]) == [SCHEMA_FILE]
    assert (here / SCHEMA_FILE).read_text() == render_schema("experiment")
    experiment = load_experiment(here / "experiment.yaml", {})
    assert {one.name for one in experiment.detectors} <= {"combined", "halludetect"}  # they say where
    assert experiment.base_url is not None
    assert Endpoint(str(experiment.model), experiment.base_url).variable == "OPENAI_API_KEY"


def test_nothing_is_overwritten(hallulab: CommandLine, here: Path) -> None:
    (here / SCHEMA_FILE).write_text("{}")
    assert hallulab("init", "experiment", "--for", "gate").code == 0
    assert (here / SCHEMA_FILE).read_text() == "{}"
    before = (here / "experiment.yaml").read_text()
    assert hallulab.code_and_error("init") == (
        2,
        "error: experiment.yaml is there already. Name a new file with --out.\n",
    )
    assert (here / "experiment.yaml").read_text() == before


def test_a_flag_of_an_experiment_goes_with_no_pack(hallulab: CommandLine, here: Path) -> None:
    assert hallulab.code_and_error("init", "--for", "gate", "pack", "p") == (
        2,
        "error: --for stands before `pack`. Write it behind.\n",
    )
    assert not (here / "p").exists()


def test_init_and_run_end_with_a_report(hallulab: CommandLine, here: Path, endpoint: str) -> None:
    model = ("--base-url", endpoint, "--model", MODEL, "--quiet")
    with without_weights():
        assert hallulab("init").code == 0
        ended = hallulab("run", "-c", "experiment.yaml", "--limit", "1", *model, "--out", "runs/first")
    assert ended.code == 0, ended.err
    journals = RunFolder(here / "runs" / "first").read_journals()
    assert {one.chatbot for one in journals.conversations} == {"vanilla", "prompt-engineered"}
    assert {one.detector for one in journals.verdicts} == {"combined", "halludetect"}
    assert (here / "runs" / "first" / "report.html").is_file()
