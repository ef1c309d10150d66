"""Actors of a Ray cluster write what one process writes, also where some die, and Ray writes no key."""

from __future__ import annotations

import asyncio
import os
import shutil
import signal
import subprocess
import time
from collections.abc import Iterator
from contextlib import nullcontext
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple, get_args
from unittest.mock import patch

import psutil
import pytest

from hallulab.agents.machine import ray_cluster
from hallulab.agents.machine.ray_cluster import read_resources
from hallulab.agents.machine.ray_nodes import Installed, compare_installed, identify_installed
from hallulab.scenarios.errors import OperationalError, UsageError
from hallulab.simulator.engine.models import RunSettings
from hallulab.simulator.engine.run import run_experiment
from hallulab.simulator.records.experiment import Experiment
from hallulab.simulator.records.experiment_file import load_experiment
from hallulab.simulator.records.folder import RunFolder
from hallulab.testing.endpoint import MODEL, completion, serve_stub
from hallulab.testing.tiny_pack import make_pack, words_for_vectors
from tests.demo import EXPERIMENT, RECORDING
from tests.demo import MODEL as DEMO_MODEL
from tests.kit.kill_points import Lines, journal_lines
from tests.kit.worker_words import use_word_vectors
from tests.places import ROOT
from tests.ray_kills import BEGIN, TwoNodes, Victim, kill_once, two_nodes
from tests.simulator.command_line import CommandLine
from tests.simulator.engine.dying_workers import die_in
from tests.simulator.engine.worker_places import KEYED, read_keys, write_ray_elsewhere

KEY = "sk-canary-0123456789"


@pytest.fixture(scope="module")
def ray_folder() -> Iterator[Path]:
    """Where Ray writes."""
    with write_ray_elsewhere() as folder, pytest.MonkeyPatch.context() as patched:
        patched.setenv("CANARY_KEY", KEY)
        yield folder


@pytest.fixture(scope="module")
def whole(demo_replay: RunFolder) -> dict[str, Lines]:
    """The journals of one process."""
    return journal_lines(demo_replay.path)


@pytest.fixture(scope="module")
def replayed(ray_folder: Path, tmp_path_factory: pytest.TempPathFactory) -> RunFolder:
    """The demo, held by two actors of which one dies."""
    folder = tmp_path_factory.mktemp("ray")
    experiment = load_experiment(EXPERIMENT, {"model": DEMO_MODEL})
    prepare = partial(die_in, "engine.executors.run_detector", folder / "died")
    settings = RunSettings(replay=RECORDING, quiet=True, workers=2, ray="local", prepare_worker=prepare)
    run = RunFolder(folder / "run")
    asyncio.run(run_experiment(experiment, run, settings, simulate=True))
    assert (folder / "died").exists()
    return run


@pytest.mark.slow
def test_two_actors_of_which_one_dies_write_what_one_process_writes(
    replayed: RunFolder, whole: dict[str, Lines]
) -> None:
    assert journal_lines(replayed.path) == whole


@pytest.mark.slow
def test_nothing_of_ray_is_left(replayed: RunFolder, ray_folder: Path) -> None:
    deadline = time.monotonic() + 120
    while left := processes_of(ray_folder):
        assert time.monotonic() < deadline, left
        time.sleep(0.1)


def processes_of(folder: Path) -> list[str]:
    """The command lines that name a folder."""
    found = []
    for process in Path("/proc").glob("[0-9]*"):
        try:
            command = (process / "cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
        except OSError:
            continue
        if str(folder) in command:
            found.append(command)
    return found


class LocalCluster(NamedTuple):
    """What was seen of a cluster on this machine."""

    addresses: list[str]
    """Where it and this process listened."""
    sigterm_as_before: bool
    """Whether SIGTERM was heard as before."""
    folders: list[set[Path]]
    """What there was before, while it ran, and afterwards, where Ray writes."""


@pytest.fixture(scope="module")
def local(ray_folder: Path) -> LocalCluster:
    """A local cluster that has ended, beside the folder of another one."""
    (ray_folder / "ray-theirs").mkdir()
    before = signal.getsignal(signal.SIGTERM)
    folders = [set(ray_folder.iterdir())]
    with ray_cluster.join_cluster("local", 1, {"CPU": 1.0}):
        folders.append(set(ray_folder.iterdir()))
        ours = psutil.Process()
        addresses = [
            connection.laddr.ip
            for process in (ours, *ours.children(recursive=True))
            for connection in process.net_connections("tcp")
            if connection.status == psutil.CONN_LISTEN
        ]
        as_before = signal.getsignal(signal.SIGTERM) is before
    folders.append(set(ray_folder.iterdir()))
    return LocalCluster(addresses, as_before, folders)


def test_a_local_cluster_listens_on_the_loopback_address_only(local: LocalCluster) -> None:
    assert len(local.addresses) > 3
    assert set(local.addresses) <= {"127.0.0.1", "::1", "::ffff:127.0.0.1"}


def test_sigterm_is_heard_as_without_ray(local: LocalCluster) -> None:
    assert local.sigterm_as_before


def test_a_local_cluster_removes_its_own_folder_and_no_other(local: LocalCluster) -> None:
    before, meanwhile, afterwards = local.folders
    assert len(meanwhile - before) == 1
    assert afterwards == before


@pytest.mark.slow
def test_a_run_that_ctrl_c_ends_removes_the_folder_of_its_cluster(ray_folder: Path, tmp_path: Path) -> None:
    before, journal = set(ray_folder.iterdir()), tmp_path / "run" / "conversations.jsonl"
    command = [*BEGIN, "--ray", "local", "--out", str(tmp_path / "run")]
    with subprocess.Popen(command, cwd=ROOT) as process:
        while not journal.exists() or not journal.stat().st_size:
            time.sleep(0.01)
        meanwhile = set(ray_folder.iterdir())
        process.send_signal(signal.SIGINT)
    assert process.returncode == 130
    assert len(meanwhile - before) == 1
    assert set(ray_folder.iterdir()) == before


@pytest.mark.slow
def test_a_key_is_in_nothing_that_ray_or_the_run_writes(
    ray_folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    kept = ray_folder / "kept"
    kept.mkdir()
    monkeypatch.setattr(ray_cluster, "_own_folder", lambda: nullcontext(kept))
    fields = {**KEYED, "scenario": str(make_pack(tmp_path / "pack"))}
    run, recording = RunFolder(tmp_path / "run"), tmp_path / "recording.jsonl"
    settings = RunSettings(
        record=recording, quiet=True, workers=2, ray="local", prepare_worker=use_word_vectors
    )
    with serve_stub(completion) as url, words_for_vectors():
        experiment = Experiment.model_validate({**fields, "base_url": url})
        asyncio.run(run_experiment(experiment, run, settings, simulate=True))
    keys = read_keys(recording)
    assert len(keys) == len(set(keys)) > 20
    assert len(run.read_journals().verdicts) == len(run.read_conversations()) * 2 * 2
    places = [path for folder in (tmp_path, kept) for path in folder.rglob("*") if path.is_file()]
    assert len(places) > 30
    assert not [path for path in places if KEY.encode() in path.read_bytes()]


@pytest.fixture(scope="module")
def nodes(ray_folder: Path) -> Iterator[TwoNodes]:
    with two_nodes() as nodes:
        yield nodes


@pytest.mark.slow
@pytest.mark.parametrize("victim", get_args(Victim))
def test_a_run_on_two_nodes_of_which_something_is_killed_loses_and_doubles_nothing(
    nodes: TwoNodes, whole: dict[str, Lines], tmp_path: Path, victim: Victim
) -> None:
    found = kill_once(nodes, victim, tmp_path / "run", whole, None)
    assert (found.lost, found.doubled) == (0, 0)
    assert found.unfinished == (victim == "command")


@pytest.mark.slow
def test_documents_are_embedded_by_the_command_alone(
    nodes: TwoNodes, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HALLULAB_CACHE", str(tmp_path / "here"))
    # The cluster has the machine's own address, to which a test may open no socket (tests/conftest.py).
    monkeypatch.setattr(ray_cluster, "_require_answer", lambda address: None)
    fields = {"model": MODEL, "chatbots": ["vanilla"], "detectors": [], "min_turns": 1, "max_turns": 1}
    prepare = partial(embed_no_documents, tmp_path / "there")
    settings = RunSettings(quiet=True, workers=1, ray=nodes.address, prepare_worker=prepare)
    with serve_stub(completion) as url, words_for_vectors():
        pack = str(make_pack(tmp_path / "pack"))
        experiment = Experiment.model_validate({**fields, "scenario": pack, "base_url": url})
        asyncio.run(run_experiment(experiment, RunFolder(tmp_path / "run"), settings, simulate=True))
    held = RunFolder(tmp_path / "run").read_conversations()
    assert {one.error for one in held} == {None}
    assert all(turn.passages for one in held for turn in one.turns)
    assert len(list((tmp_path / "there" / "knowledge").iterdir())) > 0


@pytest.mark.slow
def test_a_node_with_another_prompt_is_refused(
    nodes: TwoNodes, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ray_cluster, "_require_answer", lambda address: None)
    shutil.copytree(ROOT / "hallulab", tmp_path / "hallulab", ignore=shutil.ignore_patterns("__pycache__"))
    prompt = tmp_path / "hallulab" / "chatbots" / "prompts" / "generation.txt"
    prompt.write_text(prompt.read_text() + "Be bold.\n")
    # Nodes on one machine import from one place, so this process is the one that has something else.
    monkeypatch.setattr("hallulab.__file__", str(tmp_path / "hallulab" / "__init__.py"))
    with (
        pytest.raises(UsageError, match=r"hallulab is .* as here, with other code, prompts or tuned numbers"),
        ray_cluster.join_cluster(nodes.address, 1, {"CPU": 1.0}),
    ):
        pass


HERE = Installed("0.2.0", "aa", "3.11")


@pytest.mark.parametrize(
    ("there", "what"),
    [
        (None, "hallulab cannot be imported"),
        (Installed("0.1.0", "bb", "3.11"), "hallulab is 0.1.0, and here it is 0.2.0"),
        (
            Installed("0.2.0", "bb", "3.11"),
            "hallulab is 0.2.0 as here, with other code, prompts or tuned numbers",
        ),
        (Installed("0.2.0", "aa", "3.12"), "Python is 3.12, and here it is 3.11"),
    ],
)
def test_a_machine_with_something_else_is_named(there: Installed | None, what: str) -> None:
    with pytest.raises(UsageError) as raised:
        compare_installed("auto", HERE, [("10.0.0.1", HERE), ("10.0.0.2", there)])
    assert str(raised.value) == (
        f"--ray auto: on machine 10.0.0.2, {what}. Install the same hallulab on all machines."
    )


def test_what_is_installed_depends_on_every_prompt(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    package = tmp_path / "hallulab"
    (package / "chatbots" / "prompts").mkdir(parents=True)
    (package / "__init__.py").touch()
    (package / "chatbots" / "prompts" / "a.txt").write_text("one")
    monkeypatch.setattr("hallulab.__file__", str(package / "__init__.py"))
    before = identify_installed()
    (package / "chatbots" / "prompts" / "a.txt").write_text("two")
    assert (before.hallulab, before.python) == identify_installed()[::2]
    assert before.files != identify_installed().files


def embed_no_documents(cache: Path) -> None:
    use_word_vectors()
    os.environ["HALLULAB_CACHE"] = str(cache)

    def refuse(*_: Any) -> Any:
        raise AssertionError("a worker embeds documents")

    patch("hallulab.agents.retrieval.knowledge._embed", refuse).start()


def test_resources_are_read() -> None:
    assert read_resources(["GPU=0.25", "fast=1"]) == {"CPU": 1.0, "GPU": 0.25, "fast": 1.0}


@pytest.mark.parametrize("given", ["GPU", "GPU=", "=1", "GPU=-1", "GPU=nan", "GPU=many"])
def test_wrong_resources_are_refused(given: str) -> None:
    with pytest.raises(UsageError, match=rf"--ray-resources {given}: give NAME=AMOUNT"):
        read_resources([given])


@pytest.mark.parametrize(
    ("flags", "message"),
    [
        (
            ["--ray-resources", "GPU=1"],
            "--ray-resources: these are of actors of a Ray cluster. Give --ray, too.",
        ),
        (
            ["--ray", "local", "--batch", "vllm"],
            "--batch and --ray exclude each other: one process asks for all, or each would send waves of "
            "its own. Leave out --ray.",
        ),
    ],
)
def test_what_does_not_fit_is_refused(
    hallulab: CommandLine, tmp_path: Path, flags: list[str], message: str
) -> None:
    ended = hallulab("run", *flags, "--out", tmp_path / "run")
    assert (ended.code, ended.err) == (2, f"error: {message}\n")


def test_a_cluster_that_is_too_small_is_refused() -> None:
    with pytest.raises(UsageError) as raised:
        ray_cluster._require_room("auto", {"CPU": 3.0}, 4, {"CPU": 1.0})
    assert str(raised.value) == (
        "--ray auto: 4 workers take 4 CPU, and the cluster has 3. Lower --workers, or give another "
        "--ray-resources."
    )


@pytest.mark.parametrize(
    ("address", "message"),
    [
        (
            "127.0.0.1:1",
            "--ray 127.0.0.1:1: nobody answers there. Start a cluster with `ray start --head`, or correct "
            "the address.",
        ),
        (
            "ray://127.0.0.1:10001",
            "--ray ray://127.0.0.1:10001: this is for Ray's client. Give HOST:PORT of the cluster, port "
            "6379.",
        ),
    ],
)
def test_an_address_without_a_cluster_is_told_at_once(address: str, message: str) -> None:
    with (
        pytest.raises((OperationalError, UsageError)) as raised,
        ray_cluster.join_cluster(address, 2, {"CPU": 1.0}),
    ):
        pass
    assert str(raised.value) == message
