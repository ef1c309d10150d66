"""A model is served on each machine of a Ray cluster, until the command or one of the servers ends."""

from __future__ import annotations

import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from hallulab.agents.machine import ray_cluster
from hallulab.agents.serving.cluster import Order, Place, choose_places, choose_resources, serve_on_cluster
from hallulab.agents.serving.server import is_free
from hallulab.simulator.records.folder import RunFolder
from hallulab.testing.tiny_pack import make_pack
from tests.agents.serving.fake_server import put_environment
from tests.agents.serving.fake_vllm import FakeVllm
from tests.kit.refusals import refusal
from tests.places import ROOT
from tests.ray_kills import TwoNodes, two_nodes
from tests.simulator.command_line import CodeAndError
from tests.simulator.engine.worker_places import write_ray_elsewhere


def node(name: str, machine: str, alive: bool = True, **resources: float) -> dict[str, Any]:
    """A machine, as Ray tells it."""
    return {"NodeID": name, "NodeManagerAddress": machine, "Alive": alive, "Resources": resources}


CARDS = [
    node("head", "10.0.0.1", CPU=8),
    node("a", "10.0.0.2", CPU=8, GPU=2),
    node("b", "10.0.0.3", CPU=8, GPU=1),
    node("c", "10.0.0.4", CPU=8, GPU=2),
    node("dead", "10.0.0.5", alive=False, CPU=8, GPU=4),
]


@pytest.mark.parametrize(
    ("nodes", "resources", "places"),
    [
        (CARDS, {"CPU": 1.0, "GPU": 2.0}, [("a", "10.0.0.2", 8000), ("c", "10.0.0.4", 8000)]),
        (
            [node("a", "10.0.0.1", CPU=1), node("b", "10.0.0.1", CPU=1), node("c", "10.0.0.2", CPU=1)],
            {"CPU": 1.0},
            [("a", "10.0.0.1", 8000), ("b", "10.0.0.1", 8002), ("c", "10.0.0.2", 8000)],
        ),
    ],
    ids=["machines with enough cards", "nodes on one machine"],
)
def test_servers_have_ports_of_their_own_on_machines_with_what_they_need(
    nodes: list[dict[str, Any]], resources: dict[str, float], places: list[tuple[str, str, int]]
) -> None:
    assert choose_places(nodes, resources, 8000, replicas=2) == [Place(*place) for place in places]


def test_servers_take_cards_where_the_cluster_has_any_and_else_a_core() -> None:
    assert choose_resources(CARDS, 2) == {"CPU": 1.0, "GPU": 2.0}
    assert choose_resources([CARDS[0], CARDS[-1]], 4) == {"CPU": 1.0}


@pytest.mark.parametrize(
    ("flags", "said"),
    [
        (
            ("--ray", "local"),
            "--ray local is this machine alone. Leave --ray out, or give a cluster's address.",
        ),
        (
            ("--ray-resources", "GPU=1"),
            "--ray-resources says what is taken of a Ray cluster. Give its address by --ray.",
        ),
    ],
)
def test_flags_that_name_no_cluster_are_refused(
    flags: tuple[str, str], said: str, code_and_error: CodeAndError
) -> None:
    assert code_and_error("serve", "m", *flags) == (2, f"error: {said}\n")


class Serving(NamedTuple):
    """A cluster of two nodes, and a model that a stand-in for vLLM serves."""

    nodes: TwoNodes
    model: Path
    port: int
    """The first of two that are free."""


@pytest.fixture(scope="module")
def serving(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Serving]:
    folder = tmp_path_factory.mktemp("serving")
    model = folder / "model"
    model.mkdir()
    (model / "config.json").write_text("{}")
    put_environment(folder / "cache", FakeVllm(folder / "vllm").script)
    with write_ray_elsewhere(), pytest.MonkeyPatch.context() as patched:
        patched.setenv("HALLULAB_CACHE", str(folder / "cache"))
        with two_nodes() as nodes:
            nodes.add_second()
            yield Serving(nodes, model, find_two_free_ports())


def find_two_free_ports() -> int:
    """The first of two ports of loopback, one after the other, that are free."""
    while True:
        with socket.socket() as first:
            first.bind(("127.0.0.1", 0))
            port: int = first.getsockname()[1]
            if is_free(port + 1):
                return port


@contextmanager
def command(serving: Serving) -> Iterator[subprocess.Popen[str]]:
    """`hallulab serve` on the cluster, while the block runs."""
    flags = ["--ray", serving.nodes.address, "--port", str(serving.port)]
    begin = [sys.executable, "-m", "hallulab", "serve", str(serving.model), *flags]
    with subprocess.Popen(
        begin, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as process:
        try:
            yield process
        finally:
            process.terminate()


def read_urls(process: subprocess.Popen[str]) -> list[str]:
    """What the command prints: the addresses of two servers."""
    assert process.stdout is not None
    return [process.stdout.readline().strip() for _ in range(2)]


def wait_until_free(port: int) -> None:
    """Wait until nothing listens at two ports any more."""
    deadline = time.monotonic() + 120
    while not (is_free(port) and is_free(port + 1)):
        assert time.monotonic() < deadline
        time.sleep(0.1)


@pytest.mark.slow
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGKILL])
def test_each_machine_serves_until_the_command_ends(serving: Serving, number: signal.Signals) -> None:
    with command(serving) as process:
        urls = read_urls(process)
        process.send_signal(number)
        process.wait(120)
    wait_until_free(serving.port)
    assert urls == [f"http://127.0.0.1:{serving.port + place}/v1" for place in range(2)]


@pytest.mark.slow
def test_a_server_that_ends_is_named_with_its_machine_and_ends_the_others(serving: Serving) -> None:
    with command(serving) as process:
        read_urls(process)
        subprocess.run(["pkill", "-f", f"port {serving.port + 1} "], check=True)
        process.wait(120)
        assert process.stderr is not None
        said = process.stderr.read()
    assert process.returncode == 1
    assert f"machine {serving.nodes.machine}: the model server ended with exit code" in said
    wait_until_free(serving.port)


@pytest.mark.slow
def test_a_run_on_the_cluster_asks_the_servers_there(serving: Serving, tmp_path: Path) -> None:
    with command(serving) as process:
        urls = read_urls(process)
        run = [sys.executable, "-m", "hallulab", "run", "--no-judge", "--quiet"]
        run += ["--scenario", str(make_pack(tmp_path))]
        run += ["--chatbots", "vanilla", "--model", serving.model.name, "--repeats", "2", "--max-turns", "2"]
        run += ["--workers", "2", "--ray", serving.nodes.address, "--ray-resources", "CPU=0"]
        run += [word for url in urls for word in ("--base-url", url)]
        subprocess.run([*run, "--out", str(tmp_path / "run")], cwd=ROOT, check=True)
    held = RunFolder(tmp_path / "run").read_conversations()
    assert len(held) > 1
    assert {one.error for one in held} == {None}


@pytest.mark.slow
def test_a_cluster_without_such_a_machine_is_named(serving: Serving, monkeypatch: pytest.MonkeyPatch) -> None:
    # The cluster has the machine's own address, to which a test may open no socket (tests/conftest.py).
    monkeypatch.setattr(ray_cluster, "_require_answer", lambda address: None)
    address = serving.nodes.address
    assert refusal(serve_on_cluster, address, Order(str(serving.model)), resources=["GPU=1"]) == (
        f"--ray {address}: no machine of the cluster has CPU=1, GPU=1. Give another --ray-resources, or "
        "lower --replicas."
    )
