"""What the addresses that start, stop and resume runs answer, and whom they refuse."""

from __future__ import annotations

import json
import sys
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import pytest

from hallulab.simulator.records.experiment import Experiment
from hallulab.simulator.viewer import asked_run
from hallulab.simulator.viewer.launching import Launcher
from hallulab.simulator.viewer.offers import StartSource
from tests.simulator.cli.test_commands import saved_run
from tests.simulator.viewer.launched import fill_in
from tests.simulator.viewer.serving import Served, serving
from tests.simulator.viewer.test_form import WiderExperiment

FOREVER = (sys.executable, "-c", "import time; time.sleep(600)")


@pytest.fixture(scope="module")
def launcher(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Launcher]:
    runs = tmp_path_factory.mktemp("start") / "runs"
    runs.mkdir()
    made = Launcher(StartSource(Experiment(), runs), FOREVER)
    yield made
    made.close()


@pytest.fixture(scope="module")
def served(launcher: Launcher, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    assert launcher.source.folder is not None
    saved_run(launcher.source.folder / "held")
    indices = tmp_path_factory.mktemp("indices")
    with serving([launcher.source.folder], indices, launcher=launcher) as viewer:
        yield viewer


WRITING = ("/start", "/start/check", "/runs/{run}/stop", "/runs/{run}/resume")
FOREIGN: list[dict[str, str]] = [
    {"Origin": "http://evil.example"},
    {"Origin": "null"},
    {"x-hallulab": "0"},
    {"Cookie": "other=1"},
    {"Host": "evil.example"},
    {"Sec-Fetch-Site": "cross-site"},
]


@pytest.mark.parametrize("headers", FOREIGN)
@pytest.mark.parametrize("path", WRITING)
def test_another_page_starts_and_stops_nothing(served: Served, path: str, headers: dict[str, str]) -> None:
    [run] = [one for one in served.runs.list() if one.name == "held"]
    before = len(served.runs.list())
    status, _ = served.post(path.format(run=run.id), b"", **headers)
    assert status in (403, 421)
    assert len(served.runs.list()) == before


@pytest.mark.parametrize("path", WRITING)
def test_a_link_starts_and_stops_nothing(served: Served, path: str) -> None:
    [run] = [one for one in served.runs.list() if one.name == "held"]
    status, body = served.get(path.format(run=run.id))
    assert (status, "Experiment file" in body) == ((200, True) if path == "/start" else (405, False))


def test_checking_says_what_a_run_would_do(served: Served) -> None:
    status, body = served.post(
        "/start/check", fill_in(limit="2", model="m", base_url="http://127.0.0.1:9/v1")
    )
    told = json.loads(body)
    assert (status, told["conversations"]) == (200, 2)
    assert "limit: 2\n" in told["yaml"]


def test_checking_says_which_field_is_wrong(served: Served) -> None:
    status, body = served.post("/start/check", fill_in(limit="<b>0</b>"))
    sentence = "Input should be a valid integer, unable to parse string as an integer."
    assert (status, json.loads(body)) == (200, {"field": "limit", "sentence": sentence})


@pytest.mark.parametrize(
    "body", [b"", b"[]", b"null", b"\xff", b'{"limit": {}}', b'{"chatbots": 3}', b"[" * 9999]
)
def test_what_is_no_form_starts_nothing(served: Served, body: bytes) -> None:
    before = len(served.runs.list())
    status, answer = served.post("/start", body)
    assert status == 400
    assert set(json.loads(answer)) == {"field", "sentence"}
    assert len(served.runs.list()) == before


def test_a_started_run_has_a_page_that_stops_it(served: Served, launcher: Launcher) -> None:
    status, body = served.post("/start", fill_in())
    assert status == 200
    page = json.loads(body)["page"]
    shown = served.get(page)[1]
    assert "0</b> of 132 conversations" in shown
    assert 'id="stop-run"' in shown
    status, part = served.post(f"{page}/stop", b"{}")
    assert (status, "Stopping. What is finished is kept." in part or "Stopped." in part) == (200, True)


def test_what_has_not_changed_is_not_sent_again(served: Served) -> None:
    page = json.loads(served.post("/start", fill_in())[1])["page"]
    shown = served.get(f"{page}/standing")[1]
    mark = shown.split("seen=")[1][:16]
    assert served.get(f"{page}/standing?seen={mark}") == (204, "")
    served.post(f"{page}/stop", b"{}")


@pytest.mark.parametrize("order", ["stop", "resume"])
@pytest.mark.parametrize("run", ["none", "..", "%2e%2e%2fheld", "<b>"])
def test_a_run_that_is_not_there_is_neither_stopped_nor_resumed(served: Served, run: str, order: str) -> None:
    assert served.post(f"/runs/{urllib.request.quote(run)}/{order}", b"{}")[0] == 404


def test_a_run_that_is_not_ours_is_not_stopped(served: Served) -> None:
    [run] = [one for one in served.runs.list() if one.name == "held"]
    assert served.post(f"/runs/{run.id}/stop", b"{}")[0] == 404


@pytest.mark.parametrize("scenario", ["", "../runs", "/etc", "<script>"])
def test_personas_of_another_folder_are_not_read(served: Served, scenario: str) -> None:
    assert served.get(f"/start/personas?scenario={urllib.request.quote(scenario)}")[0] == 404


def test_an_added_field_appears_by_itself(served: Served, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(asked_run, "Experiment", WiderExperiment)
    page = served.get("/start")[1]
    assert 'name="colour"' in page
    assert "<option>blue</option>" in page
    assert "What <code>hue</code> it has; empty: none." in page
    assert 'name="loud"' in page


def test_a_viewer_without_a_folder_for_runs_says_so(tmp_path: Path) -> None:
    run = saved_run(tmp_path / "run")
    with serving([run.path], tmp_path / "indices") as viewer:
        status, body = viewer.get("/start")
    assert (status, "No folder is shown that runs can be written in." in body, "<form" in body) == (
        200,
        True,
        False,
    )
