"""Where tests have workers: in processes, as actors on this machine, or as actors on two nodes of Ray."""

from __future__ import annotations

import json
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from hallulab.agents.machine import ray_cluster
from hallulab.testing.endpoint import MODEL
from tests.ray_kills import two_nodes

PLACES = [
    "processes",
    pytest.param("local", marks=pytest.mark.slow),
    pytest.param("two nodes", marks=pytest.mark.slow),
]
"""Parameters of a fixture of a module, which shares a cluster: `open_place` takes them."""


KEYED: dict[str, Any] = {
    **{"model": MODEL, "api_key_env": "CANARY_KEY", "chatbots": ["vanilla", "agent"]},
    **{"detectors": ["halludetect", "lexical"], "repeats": 3, "max_turns": 2, "min_turns": 2},
}
"""Fields of an experiment at the stub endpoint, with a key."""


def read_keys(recording: Path) -> list[tuple[str, str]]:
    """What was asked, by kind."""
    lines = map(json.loads, recording.read_text().splitlines())
    return [(entry["kind"], entry["key"]) for entry in lines]


class WorkerPlace(NamedTuple):
    """Where workers are."""

    ray: str | None
    """See `RunSettings`."""
    died: str
    """How one that was killed ended."""
    left: str
    """How one ended that left with code 3."""
    lag_s: float
    """Seconds in which what one says has arrived, also if it is killed then."""


@contextmanager
def open_place(name: str) -> Iterator[WorkerPlace]:
    """Have a place for workers while the block runs. All that are started there share one cluster."""
    if name == "processes":
        died = "the worker process ended"
        yield WorkerPlace(None, f"{died} (SIGKILL)", f"{died} (exit code 3)", 0.0)
        return
    with write_ray_elsewhere(), pytest.MonkeyPatch.context() as patched:
        # The cluster has the machine's own address, to which a test may open no socket (tests/conftest.py).
        patched.setattr(ray_cluster, "_require_answer", lambda address: None)
        with two_nodes() if name == "two nodes" else nullcontext() as nodes:
            if nodes is not None:
                nodes.add_second()
            address = "local" if nodes is None else nodes.address
            with ray_cluster.join_cluster(address, 2, {"CPU": 1.0}):
                patched.setattr("hallulab.simulator.engine.worker_lines.join_cluster", _stay)
                ended = "the worker's Ray actor ended"
                yield WorkerPlace(address, ended, ended, 1.0)


@contextmanager
def _stay(*_: Any) -> Iterator[None]:
    """Stay in the cluster that the module has joined."""
    yield


@contextmanager
def write_ray_elsewhere() -> Iterator[Path]:
    """Have Ray write into a folder of its own while the block runs. Paths of its sockets must be short."""
    folder = Path(tempfile.mkdtemp(prefix="ray-", dir="/tmp"))
    with pytest.MonkeyPatch.context() as patched:
        patched.setenv("RAY_TMPDIR", str(folder))
        yield folder
    shutil.rmtree(folder)
