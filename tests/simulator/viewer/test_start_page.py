"""What the addresses that start, stop and resume runs answer, and whom they refuse."""

from __future__ import annotations

import sys
import urllib.request
from collections.abc import Iterator
from html import unescape
from pathlib import Path

import pytest

from hallulab.simulator.records.experiment import Experiment
from hallulab.simulator.records.experiment_file import load_experiment, write_yaml
from hallulab.simulator.viewer.launcher import Launcher
from hallulab.simulator.viewer.offer import Offer
from hallulab.simulator.viewer.start_page import plan_run
from tests.simulator.cli.test_commands import saved_run
from tests.simulator.viewer.launched import fill_in, write_text
from tests.simulator.viewer.serving import Served, serving

FOREVER = (sys.executable, "-c", "import time; time.sleep(600)")


@pytest.fixture(scope="module")
def launcher(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Launcher]:
    runs = tmp_path_factory.mktemp("start") / "runs"
    runs.mkdir()
    made = Launcher(Offer(Experiment(), runs), FOREVER)
    yield made
    made.close()


@pytest.fixture(scope="module")
def served(launcher: Launcher, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    assert launcher.offer.folder is not None
    saved_run(launcher.offer.folder / "held")
    indices = tmp_path_factory.mktemp("indices")
    with serving([launcher.offer.folder], indices, launcher=launcher) as viewer:
        yield viewer


WRITING = ("/start", "/start/plan", "/runs/{run}/stop", "/runs/{run}/resume")
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
    status, _ = served.post(path.format(run=run.id), fill_in(write_text()), **headers)
    assert status in (403, 421)
    assert len(served.runs.list()) == before


@pytest.mark.parametrize("path", WRITING)
def test_a_link_starts_and_stops_nothing(served: Served, path: str) -> None:
    [run] = [one for one in served.runs.list() if one.name == "held"]
    status, body = served.get(path.format(run=run.id))
    assert (status, "Experiment file" in body) == ((200, True) if path == "/start" else (405, False))


def test_the_plan_says_what_a_run_would_do_and_starts_none(served: Served, launcher: Launcher) -> None:
    before = len(served.runs.list())
    status, body = served.post("/start/plan", fill_in(write_text(limit=2, repeats=3)))
    assert status == 200
    assert [line.strip() for line in body.replace("</li>", "\n").splitlines() if "<li>" in line] == [
        "<ul><li>6 conversations of 1 chatbot, of at most 8 turns, judged by 1 detector.",
        "<li>6 conversations, about 180 requests.",
        "<li>The model is patient, at scripted://patient/v1.",
        f"<li>The run is written to a new folder in {launcher.offer.folder}, named by the time.",
    ]
    assert len(served.runs.list()) == before


def test_a_mistake_is_reported_with_its_line_and_shown_as_text(served: Served) -> None:
    for address in ("/start/plan", "/start"):
        status, body = served.post(address, fill_in("detectors: [lexical]\nlimit: <b>0</b>\n"))
        assert (status, "<b>0" in body) == (200, False)
        assert "experiment.yaml, line 2: limit: " in unescape(body)


def test_the_field_begins_with_an_example_or_the_experiment_of_a_run(served: Served) -> None:
    [run] = [one for one in served.runs.list() if one.name == "held"]
    assert "chatbots: [vanilla, editor]" in served.get("/start")[1]
    saved = run.folder.read_experiment()
    assert saved is not None
    assert write_yaml(saved.experiment) in unescape(served.get(f"/start?run={run.id}")[1])


def test_a_started_run_has_a_page_that_stops_it(served: Served, launcher: Launcher) -> None:
    before = {run.id for run in served.runs.list()}
    assert served.post("/start", fill_in(write_text())) == (200, "")
    [run] = [one for one in served.runs.list() if one.id not in before]
    shown = served.get(f"/runs/{run.id}")[1]
    assert "0</b> of 137 conversations. The run is under way." in shown
    assert 'id="stop-run"' in shown
    assert served.post(f"/runs/{run.id}/stop", b"") == (204, "")
    assert served.post("/runs/none/stop", b"")[0] == 404
    launch = launcher.get(run.folder)
    assert launch is not None
    launch.process.wait(60)
    assert "Stopped. What was finished is kept." in served.get(f"/runs/{run.id}/live")[1]


@pytest.mark.parametrize("order", ["stop", "resume"])
@pytest.mark.parametrize("run", ["none", "..", "%2e%2e%2fheld", "<b>"])
def test_a_run_that_is_not_there_is_neither_stopped_nor_resumed(served: Served, run: str, order: str) -> None:
    assert served.post(f"/runs/{urllib.request.quote(run)}/{order}", b"")[0] == 404


def test_a_run_that_is_not_ours_is_not_stopped(served: Served) -> None:
    [run] = [one for one in served.runs.list() if one.name == "held"]
    assert served.post(f"/runs/{run.id}/stop", b"")[0] == 404


def test_a_viewer_without_a_folder_for_runs_starts_none(tmp_path: Path) -> None:
    run = saved_run(tmp_path / "run")
    with serving([run.path], tmp_path / "indices") as viewer:
        status, body = viewer.get("/start")
        refused = viewer.post("/start", fill_in(write_text(base_url="http://127.0.0.1:9/v1")))[1]
    assert (status, "<form" in body) == (200, False)
    assert "No folder is shown that runs can be written in" in body
    assert "No folder is shown that runs can be written in" in refused


EXPERIMENTS = [
    {"limit": 2, "seed": -7, "timed": False, "timeout": 2.5},
    {"model": "1e3 # no: [comment]", "base_url": "http://127.0.0.1:9/v1", "concurrency": 16},
    {"model": "<b>\u00e9 'q' \"q\"", "base_urls": ["http://127.0.0.1:9/v1", "http://127.0.0.1:8/v1"]},
    {"model": "m", "base_url": "https://far.example/v1", "api_key_env": "PATH"},
    {"model": "m", "base_url": "https://far.example/v1", "api_key_env": "PATH", "concurrency": 16},
    {"model": "smollm2-135m"},
    {"model": "smollm2-135m", "max_turns": 4, "top_k": 4, "min_turns": 2},
    {"chatbots": ["agent"], "detectors": []},
    {"chatbots": [{"name": "short", "kind": "vanilla", "options": {"max_tokens": 50}}, "editor"]},
    {"attack": {"poison_ratio": 0.5, "retrieval": {"empty_ratio": 0.1}}, "manners": []},
    {"until_decided": {"margin": 0.3, "budget": "8personas"}},
    {"models": {"big": {"model": "m"}}, "user": {"models": ["big", "default"]}, "model": "x"},
    {"scenario": "pregnancy-medication", "count": 5},
]


@pytest.mark.parametrize("set_all", [False, True])
@pytest.mark.parametrize("fields", EXPERIMENTS)
def test_the_text_of_an_experiment_does_the_same_run(
    fields: dict[str, object], set_all: bool, tmp_path: Path
) -> None:
    experiment = load_experiment(None, {"chatbots": ["vanilla", "editor"], **fields})
    if set_all:  # as in experiment.json
        experiment = Experiment.model_validate(experiment.model_dump())
    file = tmp_path / "that.yaml"
    file.write_text(write_yaml(experiment))
    assert load_experiment(file, {}).model_dump() == experiment.model_dump()


def test_the_text_has_only_what_differs_from_the_defaults() -> None:
    everything = Experiment.model_validate(Experiment(limit=2).model_dump())
    assert write_yaml(everything) == "limit: 2\n"


def test_a_run_that_ends_when_it_is_decided_has_at_most_so_many_conversations(tmp_path: Path) -> None:
    text = "chatbots: [vanilla, editor]\nuntil_decided: true\nlimit: 4\n"
    assert plan_run(Offer(folder=tmp_path), text)[1][0].startswith("At most 8 conversations of 2 chatbots")
