"""No page sends a key to an address that the command line does not name, unless both are confirmed."""

from __future__ import annotations

import json
import re
import sys
import urllib.parse
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from hallulab.simulator.records.experiment import Experiment
from hallulab.simulator.records.folder import RunFolder
from hallulab.simulator.viewer.launching import FILE, Launcher
from hallulab.simulator.viewer.offers import StartSource
from hallulab.simulator.viewer.starting import CONFIRMED
from tests.simulator.cli.test_strangers_addresses import FAR, WAYS, naming, strangers_run
from tests.simulator.recording_endpoint import KEY, VARIABLE, Recorded, recording_endpoint
from tests.simulator.viewer.launched import wait_for
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
    made = Launcher(StartSource(Experiment(), runs), NOTING)
    yield made
    made.close()


@pytest.fixture
def served(runs: Path, launcher: Launcher) -> Iterator[Served]:
    with serving([runs], runs.parent / "indices", launcher=launcher) as viewer:
        yield viewer


def resume(served: Served, marks: list[str]) -> str:
    """What the page shows when it goes on with the only run, and these were ticked."""
    [run] = served.runs.list()
    body = urllib.parse.urlencode([(CONFIRMED, mark) for mark in marks])
    status, part = served.post(f"/runs/{run.id}/resume", body.encode())
    assert status == 200
    return part


def list_marks(page: str) -> list[str]:
    """The boxes that are to be ticked."""
    return re.findall(rf'name="{CONFIRMED}" value="([0-9a-f]+)" required', page)


def read_noted(run: RunFolder) -> dict[str, Any]:
    """The experiment file that the command was given."""
    noted = run.path / "noted"
    found: dict[str, Any] = yaml.safe_load(wait_for(lambda: noted.is_file() and noted.read_text()))
    return found


@pytest.mark.parametrize("how", WAYS)
def test_resuming_needs_a_confirmation_that_names_both(
    served: Served, launcher: Launcher, endpoint: Recorded, runs: Path, how: str
) -> None:
    run = strangers_run(runs / "theirs", **naming(endpoint.url, how))
    [shown] = served.runs.list()
    page = served.get(f"/runs/{shown.id}")[1]
    assert f"{endpoint.url} gets texts and the key in {VARIABLE}" in page
    for marks in ([], ["0" * 32], [VARIABLE, endpoint.url]):
        assert "Confirm first that" in resume(served, marks)
    assert launcher.get(run) is None
    assert endpoint.heads == []
    resume(served, list_marks(page))
    given = read_noted(run)
    assert VARIABLE in json.dumps(given)
    assert endpoint.url in json.dumps(given)


def test_a_folder_that_was_changed_in_between_is_refused(
    served: Served, launcher: Launcher, runs: Path
) -> None:
    run = strangers_run(runs / "theirs", base_url="https://friend.example/v1", api_key_env=VARIABLE)
    [shown] = served.runs.list()
    marks = list_marks(served.get(f"/runs/{shown.id}")[1])
    assert len(marks) == 1
    run.experiment.write_text(run.experiment.read_text().replace("friend", "evil"))
    assert f"Confirm first that https://evil.example/v1 gets texts and the key in {VARIABLE}" in resume(
        served, marks
    )
    assert launcher.get(run) is None


def test_the_file_in_the_folder_is_not_what_the_command_reads(served: Served, runs: Path) -> None:
    """Whoever changes it once it is written changes nothing."""
    run = strangers_run(runs / "mine", detectors=["lexical"], limit=3)
    (run.path / FILE).write_text("limit: 7\n")
    resume(served, [])
    assert read_noted(run)["limit"] == 3
    assert yaml.safe_load((run.path / FILE).read_text())["limit"] == 3


def test_a_server_on_this_machine_without_a_key_needs_none(
    served: Served, endpoint: Recorded, runs: Path
) -> None:
    run = strangers_run(runs / "mine", base_url=endpoint.url)
    [shown] = served.runs.list()
    assert list_marks(served.get(f"/runs/{shown.id}")[1]) == []
    resume(served, [])
    assert read_noted(run)["base_url"] == endpoint.url


def test_what_the_command_line_names_needs_none(runs: Path) -> None:
    experiment = Experiment(model="stub", base_url=FAR, api_key_env=VARIABLE)
    launcher = Launcher(StartSource(experiment, runs), NOTING)
    run = strangers_run(runs / "mine", base_url=FAR, api_key_env=VARIABLE)
    with serving([runs], runs.parent / "indices", launcher=launcher) as viewer:
        resume(viewer, [])
        assert read_noted(run)["api_key_env"] == VARIABLE
    launcher.close()


def test_a_bot_behind_an_endpoint_is_confirmed_too(served: Served, launcher: Launcher, runs: Path) -> None:
    options = {"model": "m", "base_url": FAR, "api_key_env": VARIABLE}
    guarded = {"chatbot": {"kind": "endpoint", "options": options}}
    bots = [{"name": "vanilla", "kind": "guarded", "options": guarded}]
    run = strangers_run(runs / "theirs", chatbots=bots)
    assert f"Confirm first that {FAR} gets texts and the key in {VARIABLE}" in resume(served, [])
    assert launcher.get(run) is None


def test_a_request_of_any_form_to_this_machine_is_confirmed(
    served: Served, launcher: Launcher, endpoint: Recorded, runs: Path
) -> None:
    options = {"url": f"{endpoint.url}/anything", "body": {"delete": "all"}, "query": {"q": "{{ message }}"}}
    run = strangers_run(runs / "theirs", chatbots=[{"name": "vanilla", "kind": "http", "options": options}])
    page = resume(served, [])
    assert f"Confirm first that {endpoint.url}/anything gets requests of any form" in page
    marks = list_marks(served.get(f"/runs/{served.runs.list()[0].id}")[1])
    changed = json.loads(run.experiment.read_text())
    changed["experiment"]["chatbots"][0]["options"]["body"] = {"delete": "more"}
    run.experiment.write_text(json.dumps(changed))
    assert "Confirm first that" in resume(served, marks)
    assert (launcher.get(run), endpoint.heads) == (None, [])


FORM = {"chatbots": ["vanilla"], "detectors": ["lexical"], "model": "stub", "api_key_env": VARIABLE}


def fill(url: str, **more: Any) -> bytes:
    return json.dumps({**FORM, "base_url": url, **more}).encode()


def test_starting_needs_a_confirmation_that_names_both(
    served: Served, endpoint: Recorded, runs: Path
) -> None:
    status, body = served.post("/start/check", fill(endpoint.url))
    [recipient] = json.loads(body)["recipients"]
    assert recipient["sentence"] == f"{endpoint.url} gets texts and the key in {VARIABLE}"
    other = json.loads(served.post("/start/check", fill(FAR))[1])["recipients"][0]["mark"]
    for confirmed in ([], True, [other], recipient["mark"], {recipient["mark"]: 1}):
        status, body = served.post("/start", fill(endpoint.url, confirmed=confirmed))
        assert (status, json.loads(body)["field"]) == (400, CONFIRMED)
    assert list(runs.iterdir()) == []
    status, _ = served.post("/start", fill(endpoint.url, confirmed=[recipient["mark"]]))
    assert status == 200
    [folder] = runs.iterdir()
    assert read_noted(RunFolder(folder))["api_key_env"] == VARIABLE
    assert endpoint.heads == []


@pytest.mark.parametrize(
    "address",
    ["", "start", "runs/{run}", "runs/{run}/live", "runs/{run}/standing", "runs/{run}/conversations", "talk"],
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
    status, told = served.post(f"/runs/{shown.id}/resume", b"")
    assert (status, "Name it in an experiment file" in told) == (403, True)
    assert launcher.get(run) is None
