"""No page sends a key, or beyond this machine a text, to an address that the command line does not name."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from hallulab.simulator.records.experiment import Experiment
from hallulab.simulator.records.folder import RunFolder
from hallulab.simulator.records.recipients import VIEW_FILE
from hallulab.simulator.viewer.launcher import Launcher
from hallulab.simulator.viewer.offer import Offer
from tests.simulator.cli.test_strangers_addresses import FAR, WAYS, naming, strangers_run
from tests.simulator.recording_endpoint import KEY, VARIABLE, Recorded, recording_endpoint
from tests.simulator.viewer.launched import fill_in, wait_for, write_text
from tests.simulator.viewer.serving import Served, serving

NOTING = (
    sys.executable,
    "-c",
    "import pathlib, sys; pathlib.Path(sys.argv[-1], 'noted').write_text(open(sys.argv[3]).read())",
)
"""Stands for the command: notes the experiment file that it is given."""


@pytest.fixture(scope="module")
def endpoint() -> Iterator[Recorded]:
    with recording_endpoint() as recorded:
        yield recorded


@pytest.fixture
def runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv(VARIABLE, KEY)
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    (tmp_path / "runs").mkdir()
    return tmp_path / "runs"


@pytest.fixture
def launcher(runs: Path) -> Iterator[Launcher]:
    made = Launcher(Offer(Experiment(), runs), NOTING)
    yield made
    made.close()


@pytest.fixture
def served(runs: Path, launcher: Launcher) -> Iterator[Served]:
    with serving([runs], runs.parent / "indices", launcher=launcher) as viewer:
        yield viewer


def resume(served: Served) -> str:
    """What the page shows of a refusal to resume the only run; empty: it goes on."""
    [run] = served.runs.list()
    status, part = served.post(f"/runs/{run.id}/resume", b"")
    assert status == (200 if part else 204)
    return part


def read_noted(run: RunFolder) -> dict[str, Any]:
    """The experiment file that the command was given."""
    noted = run.path / "noted"
    found: dict[str, Any] = yaml.safe_load(wait_for(lambda: noted.is_file() and noted.read_text()))
    return found


@pytest.mark.parametrize("how", WAYS)
def test_a_run_whose_address_only_its_folder_names_is_not_resumed(
    served: Served, launcher: Launcher, endpoint: Recorded, runs: Path, how: str
) -> None:
    run = strangers_run(runs / "theirs", **naming(endpoint.url, how))
    [shown] = served.runs.list()
    refusal = f"No page may start a run in which {endpoint.url} gets texts and the key in {VARIABLE}."
    page = served.get(f"/runs/{shown.id}")[1]
    assert (refusal in page, 'id="resume-run"' in page) == (True, False)
    assert refusal in resume(served)
    assert (launcher.get(run), endpoint.heads) == (None, [])


def test_a_folder_that_was_changed_since_its_page_was_shown_is_refused(
    served: Served, launcher: Launcher, endpoint: Recorded, runs: Path
) -> None:
    run = strangers_run(runs / "theirs", base_url=endpoint.url)
    [shown] = served.runs.list()
    assert 'id="resume-run"' in served.get(f"/runs/{shown.id}")[1]
    run.experiment.write_text(run.experiment.read_text().replace(endpoint.url, "https://evil.example/v1"))
    assert "https://evil.example/v1 gets texts" in resume(served)
    assert launcher.get(run) is None


def test_the_file_in_the_folder_is_not_what_the_command_reads(served: Served, runs: Path) -> None:
    """Whoever changes it once it is written changes nothing."""
    run = strangers_run(runs / "mine", detectors=["lexical"], limit=3)
    (run.path / VIEW_FILE).write_text("limit: 7\n")
    assert resume(served) == ""
    assert read_noted(run)["limit"] == 3
    assert yaml.safe_load((run.path / VIEW_FILE).read_text())["limit"] == 3


def test_a_server_on_this_machine_without_a_key_is_asked(
    served: Served, endpoint: Recorded, runs: Path
) -> None:
    run = strangers_run(runs / "mine", base_url=endpoint.url)
    assert resume(served) == ""
    assert read_noted(run)["base_url"] == endpoint.url


def test_an_address_that_the_command_line_names_is_asked(runs: Path) -> None:
    experiment = Experiment(model="stub", base_url=FAR, api_key_env=VARIABLE)
    launcher = Launcher(Offer(experiment, runs), NOTING)
    run = strangers_run(runs / "mine", base_url=FAR, api_key_env=VARIABLE)
    with serving([runs], runs.parent / "indices", launcher=launcher) as viewer:
        assert resume(viewer) == ""
        assert read_noted(run)["api_key_env"] == VARIABLE
    launcher.close()


def test_a_bot_behind_an_endpoint_counts_too(served: Served, launcher: Launcher, runs: Path) -> None:
    options = {"model": "m", "base_url": FAR, "api_key_env": VARIABLE}
    guarded = {"chatbot": {"kind": "endpoint", "options": options}}
    bots = [{"name": "vanilla", "kind": "guarded", "options": guarded}]
    run = strangers_run(runs / "theirs", chatbots=bots)
    assert f"No page may start a run in which {FAR} gets texts and the key in {VARIABLE}" in resume(served)
    assert launcher.get(run) is None


def test_no_request_of_any_form_is_sent_to_this_machine(
    served: Served, launcher: Launcher, endpoint: Recorded, runs: Path
) -> None:
    options = {"url": f"{endpoint.url}/anything", "body": {"delete": "all"}, "query": {"q": "{{ message }}"}}
    run = strangers_run(runs / "theirs", chatbots=[{"name": "vanilla", "kind": "http", "options": options}])
    assert f"{endpoint.url}/anything gets requests of any form" in resume(served)
    assert (launcher.get(run), endpoint.heads) == (None, [])


@pytest.mark.parametrize("place", ["/start/plan", "/start"])
def test_a_text_starts_no_run_that_sends_a_key_elsewhere(
    served: Served, endpoint: Recorded, runs: Path, place: str
) -> None:
    text = write_text(model="stub", api_key_env=VARIABLE, base_url=endpoint.url)
    page = served.post(place, fill_in(text))[1]
    assert f"No page may start a run in which {endpoint.url} gets texts and the key in {VARIABLE}" in page
    assert (list(runs.iterdir()), endpoint.heads) == ([], [])


@pytest.mark.parametrize(
    "address",
    ["", "start", "runs/{run}", "start?run={run}", "runs/{run}/live", "runs/{run}/conversations", "talk"],
)
def test_no_page_asks_anybody_by_being_shown(
    served: Served, endpoint: Recorded, runs: Path, address: str
) -> None:
    strangers_run(runs / "theirs", **naming(endpoint.url, "main"))
    [run] = served.runs.list()
    assert served.get(f"/{address.format(run=run.id)}")[0] == 200
    assert endpoint.heads == []


@pytest.mark.parametrize(
    "fields",
    [
        {"embedding_model": "we\u200bights"},
        {"model": "d" * 200 + "/" + "e" * 200 + "/"},
        {"detectors": [{"name": "x", "kind": "hhem", "options": {"weights": "we\nights"}}]},
        {"detectors": [{"name": "x", "kind": "combined", "options": {"model": "x" * 300}}]},
        {"chatbots": [{"name": "x", "kind": "guarded", "options": {"policy": "\u200bmine.yaml"}}]},
    ],
)
def test_a_run_that_reads_a_folder_of_ours_is_not_resumed(
    served: Served, launcher: Launcher, runs: Path, fields: dict[str, Any]
) -> None:
    run = strangers_run(runs / "theirs", **fields)
    [shown] = served.runs.list()
    assert 'id="resume-run"' not in served.get(f"/runs/{shown.id}")[1]
    assert "Name it in an experiment file" in resume(served)
    assert launcher.get(run) is None
