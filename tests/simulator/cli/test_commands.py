"""What the commands print and write, and what they import to do so."""

from __future__ import annotations

import json
import signal
import socket
import subprocess
import sys
import urllib.request
from collections.abc import Callable
from pathlib import Path

import pytest

from hallulab.agents.serving.catalogue import DEFAULT_CPU_MODEL
from hallulab.scenarios.datasets.rows import load_rows
from hallulab.scenarios.transcript import Passage, Turn
from hallulab.simulator.records.experiment import Experiment
from hallulab.simulator.records.experiment_file import load_experiment
from hallulab.simulator.records.experiment_json import SavedExperiment
from hallulab.simulator.records.folder import RunFolder
from tests.builders import conversation, scored
from tests.kit.run_folders import write_run
from tests.places import RECORDINGS
from tests.simulator.command_line import Ended
from tests.simulator.viewer.launched import fill_in, write_text

Hallulab = Callable[..., Ended]

RECORDING = RECORDINGS / "demo.jsonl.gz"


def saved_run(folder: Path) -> RunFolder:
    """A run of one conversation with one reply, judged by `metarag` of an experiment that named it."""
    passage = Passage(id="fees#0", document="fees", text="The fee is Rs 200.")
    turn = Turn(index=0, user="What is the fee?", passages=(passage,), reply="The fee is Rs 500.")
    held = conversation("c", [], scenario="consumer-grievance-india", turns=(turn,))
    run = write_run(folder, [held], [scored("c", 0, [(11, 17)], detector="metarag")])
    asked = load_experiment(None, {"model": "m", "chatbots": ["vanilla"], "detectors": ["metarag"]})
    whole = Experiment.model_validate(asked.model_dump())
    run.write_experiment(SavedExperiment(experiment=whole, identity={}, detectors={"metarag": "1"}))
    return run


def test_a_list_shows_markup_as_it_is_and_cuts_no_text_short(hallulab: Hallulab, tmp_path: Path) -> None:
    hallulab("init-scenario", tmp_path / "pack")
    grievance = "a [bold]loud[/red] matter" + " broken" * 50
    (tmp_path / "pack" / "personas.yaml").write_text(
        f"personas:\n  - {{id: p, name: P, grievance: '{grievance}', goals: [g], manner: m, summary: s}}\n"
    )
    listed = hallulab("list", "personas", "--scenario", tmp_path / "pack")
    assert (listed.code, listed.err, listed.out.count("broken")) == (0, "", 50)
    assert "a [bold]loud[/red] matter" in listed.out


def test_detect_adds_a_detectors_verdicts_once_and_keeps_the_others(
    hallulab: Hallulab, tmp_path: Path
) -> None:
    run = saved_run(tmp_path / "run")
    before = run.verdicts.read_text()
    ended = hallulab("detect", run.path, "--detectors", "lexical", "--json")
    assert (ended.code, ended.err) == (0, "")
    assert run.verdicts.read_text().startswith(before)
    assert [verdict.detector for verdict in run.read_journals().verdicts] == ["metarag", "lexical"]
    rows = json.loads(ended.out)["rows"]
    assert {(row["detector"], row["scored_turns"]) for row in rows} == {("metarag", 1), ("lexical", 1)}
    once = run.verdicts.read_text()
    hallulab("detect", run.path, "--detectors", "lexical")
    assert run.verdicts.read_text() == once


def bare_run(folder: Path, **changes: str | int) -> RunFolder:
    """The same run without its experiment.json and verdicts, its conversation as `changes` say."""
    run = saved_run(folder)
    (held,) = run.read_conversations()
    run.conversations.write_text(held.model_copy(update=changes).model_dump_json() + "\n")
    run.experiment.unlink()
    run.verdicts.unlink()
    return run


def test_without_an_experiment_the_journal_says_what_is_judged(hallulab: Hallulab, tmp_path: Path) -> None:
    run = bare_run(tmp_path / "run", scenario="pregnancy-medication", chatbot="theirs", seed=7)
    for _ in range(2):
        ended = hallulab("detect", run.path, "--detectors", "lexical", "--json")
        assert (ended.code, ended.err) == (0, "")
        assert {row["chatbot"] for row in json.loads(ended.out)["rows"]} == {"theirs"}
    saved = json.loads(run.experiment.read_text())
    assert saved["experiment"] == {
        "scenario": "pregnancy-medication",
        "chatbots": [{"name": "theirs", "kind": "theirs"}],
        "detectors": [{"name": "lexical", "kind": "lexical"}],
        "seed": 7,
        "model": DEFAULT_CPU_MODEL,
    }
    assert (saved["seeds"], saved["identity"], list(saved["detectors"])) == ([7], {}, ["lexical"])


def test_without_an_experiment_a_file_may_name_the_pack(hallulab: Hallulab, tmp_path: Path) -> None:
    pack, config = tmp_path / "pack", tmp_path / "experiment.yaml"
    hallulab("init-scenario", pack)
    config.write_text(f"scenario: {pack}\n")
    run = bare_run(tmp_path / "run", scenario="town-library")
    assert hallulab("detect", run.path, "-c", config, "--detectors", "lexical").code == 0
    assert json.loads(run.experiment.read_text())["experiment"]["scenario"] == str(pack)


def test_an_experiment_of_the_folder_keeps_its_scenario(hallulab: Hallulab, tmp_path: Path) -> None:
    config = tmp_path / "experiment.yaml"
    config.write_text("scenario: pregnancy-medication\n")
    run = saved_run(tmp_path / "run")
    before = json.loads(run.experiment.read_text())
    assert hallulab("detect", run.path, "-c", config, "--detectors", "lexical").code == 0
    after = json.loads(run.experiment.read_text())
    assert after["experiment"] == before["experiment"]
    assert after["identity"] == before["identity"]


def test_what_simulate_leaves_is_judged_by_the_experiments_detectors(
    hallulab: Hallulab, tmp_path: Path
) -> None:
    config = tmp_path / "experiment.yaml"
    config.write_text(
        "detectors: [{name: strict, kind: lexical, options: {threshold: 0.1}}]\n"
        "chatbots: [vanilla]\npersonas: [refrigerator-stops-cooling]\nmin_turns: 2\nmax_turns: 2\n"
        "manners: [plain, plain, plain, terse, plain+pushes-back, plain+misspelling]\n"
    )
    run = RunFolder(tmp_path / "run")
    flags = ("--model", "qwen2.5-coder-1.5b", "--replay", RECORDING)
    assert hallulab("run", "--no-judge", "-c", config, *flags, "--out", run.path).out == f"{run.path}\n"
    assert len(run.read_journals().verdicts) == 0
    assert hallulab("detect", run.path, "--replay", RECORDING).code == 0
    judged = [(verdict.detector, verdict.turn, verdict.outcome) for verdict in run.read_journals().verdicts]
    assert sorted(judged) == [("strict", 0, "scored"), ("strict", 1, "scored")]


def test_json_is_all_that_stands_on_standard_output(hallulab: Hallulab, tmp_path: Path) -> None:
    run = saved_run(tmp_path / "run")
    ended = hallulab("report", run.path, "--json")
    assert json.loads(ended.out) == json.loads(run.report.read_text())
    assert ended.err == ""


def test_view_serves_until_it_is_interrupted(tmp_path: Path) -> None:
    run = saved_run(tmp_path / "run")
    command = [sys.executable, "-m", "hallulab", "view", str(run.path), "--no-browser"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        address = process.stdout.readline().strip()
        browser = urllib.request.build_opener(urllib.request.HTTPCookieProcessor())
        with browser.open(address, timeout=120) as answer:
            page = answer.read().decode()
        process.send_signal(signal.SIGINT)
        rest, told = process.communicate(timeout=120)
    assert ">run</a>" in page
    assert (process.returncode, rest, told) == (0, "", "")
    assert not run.page.exists()


@pytest.mark.slow
def test_view_stops_its_runs_when_it_is_interrupted(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "hallulab", "view", str(tmp_path), "--no-browser"]
    with (
        socket.create_server(("127.0.0.1", 0)) as silent,  # accepts and never answers: the run goes on
        subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process,
    ):
        assert process.stdout is not None
        address = process.stdout.readline().strip()
        base = address.split("/?")[0]
        browser = urllib.request.build_opener(urllib.request.HTTPCookieProcessor())
        browser.open(address, timeout=120).close()
        text = write_text(model="m", base_url=f"http://127.0.0.1:{silent.getsockname()[1]}/v1")
        given = {"Origin": base, "x-hallulab": "1"}
        browser.open(urllib.request.Request(f"{base}/start", fill_in(text), given), timeout=60).close()
        process.send_signal(signal.SIGINT)
        rest, told = process.communicate(timeout=240)
    [run] = [path for path in tmp_path.iterdir() if path.is_dir()]
    ended = f"stopped: {run}. Its page resumes it, and so does the same `hallulab run`.\n"
    assert (process.returncode, rest, told) == (0, ended, "")
    assert not RunFolder(run).is_claimed


def test_view_of_no_folder_is_told(hallulab: Hallulab, tmp_path: Path) -> None:
    none = tmp_path / "none"
    ended = hallulab("view", none)
    told = f"error: {none}: there is no such folder. Give run folders, or a folder that holds them.\n"
    assert (ended.code, ended.err) == (2, told)


def test_view_at_a_taken_port_is_told(hallulab: Hallulab, tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        ended = hallulab("view", tmp_path, "--port", str(port))
    assert (ended.code, ended.err) == (
        1,
        f"error: port {port} of 127.0.0.1 cannot be used (Address already in use). Give another --port.\n",
    )


def test_what_export_writes_loads_as_labelled_data(hallulab: Hallulab, tmp_path: Path) -> None:
    run, out = saved_run(tmp_path / "run"), tmp_path / "data.jsonl"
    ended = hallulab("export", run.path, "--detector", "metarag", "--out", out)
    assert (ended.code, ended.out, ended.err) == (0, f"1 reply written to {out}\n", "")
    (reply,) = load_rows(out)
    assert (reply.id, reply.reply, reply.label) == ("c-0", "The fee is Rs 500.", True)
    assert [(span.start, span.end) for span in reply.spans or ()] == [(11, 17)]
    assert [passage.id for passage in reply.passages] == ["fees#0"]
    assert reply.meta == {
        "conversation": "c",
        "chatbot": "vanilla",
        "model": "m",
        "scenario": "consumer-grievance-india",
        "seed": 0,
        "turn": 0,
        "detector": "metarag",
        "detector_version": "1",
    }


def test_an_export_for_annotators_says_that_it_has_no_labels(hallulab: Hallulab, tmp_path: Path) -> None:
    run, out = saved_run(tmp_path / "run"), tmp_path / "data.jsonl"
    ended = hallulab("export", run.path, "--out", out)
    assert (ended.code, ended.out, ended.err) == (
        0,
        f"1 reply written to {out}\n",
        "no line has a label: fill in `label` or `spans` before `hallulab bench` reads them, or give "
        "--detector\n",
    )
    unlabelled = "no labelled reply is left to judge. Give each a `label` or `spans` (docs/labelled-data.md)."
    assert hallulab("bench", out).err == f"error: {out}: {unlabelled}\n"


def test_export_of_an_unknown_detector_is_refused(hallulab: Hallulab, tmp_path: Path) -> None:
    run = saved_run(tmp_path / "run")
    ended = hallulab("export", run.path, "--detector", "halu", "--out", tmp_path / "data.jsonl")
    assert ended.code == 2
    assert ended.err == (
        f"error: {run.path} has no scored verdicts of a detector 'halu'. Make them with "
        f"`hallulab detect {run.path} --detectors NAME`, or correct --detector.\n"
    )


@pytest.mark.parametrize("name", ["conversations.jsonl", "report.html"])
def test_export_leaves_the_files_of_the_run_alone(hallulab: Hallulab, tmp_path: Path, name: str) -> None:
    run = saved_run(tmp_path / "run")
    hallulab("report", run.path)
    before = (run.path / name).read_bytes()
    ended = hallulab("export", run.path, "--out", run.path / name)
    assert (ended.code, ended.err) == (
        2,
        f"error: cannot write {run.path / name}: a file of the input would be lost. Give another file.\n",
    )
    assert (run.path / name).read_bytes() == before
