"""Kill parts of a run on a Ray cluster, and count what is lost: `python -m tests.ray_kills [--kills N]`.

A cluster of two nodes on this machine, a core each, holds the recorded demo by two actors. At a random moment
an actor, the second node or the command is ended by SIGKILL, N times each. A run that the command did not
survive is started again. Then its journals are compared with those of one process.

The last line of the output is a JSON object.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, Literal, get_args

import psutil

from tests.demo import EXPERIMENT, MODEL, RECORDING, replay
from tests.kit.kill_points import Found, Lines, count_differences, journal_lines
from tests.places import ROOT

Victim = Literal["actor", "node", "command"]

BEGIN = [
    *(sys.executable, "-m", "hallulab", "run", "-c", str(EXPERIMENT), "--concurrency", "1", "--quiet"),
    *("--model", MODEL, "--replay", str(RECORDING), "--workers", "2"),
]
"""The command, without cluster and folder."""


class TwoNodes:
    """The cluster. Its second node is there again for each run."""

    def __init__(self) -> None:
        from ray.cluster_utils import Cluster

        self._cluster = Cluster(
            initialize_head=True, head_node_args={"num_cpus": 1, "include_dashboard": False}
        )
        self._second: Any = None

    @property
    def address(self) -> str:
        """Where the cluster is."""
        return str(self._cluster.address)

    @property
    def machine(self) -> str:
        """The address of the machine, as the cluster knows it."""
        return self.address.partition(":")[0]

    def kill(self, victim: Victim, command: subprocess.Popen[bytes]) -> None:
        """End somebody by SIGKILL, if it is there."""
        if victim == "node":
            self._cluster.remove_node(self._second, allow_graceful=False)
            self._second = None
        elif victim == "command":
            command.kill()
        else:
            for actor in find_actors()[:1]:
                os.kill(actor, signal.SIGKILL)

    def add_second(self) -> None:
        """Start the second node, unless it is there."""
        if self._second is None:
            self._second = self._cluster.add_node(num_cpus=1)
            self._cluster.wait_for_nodes()

    def start(self, folder: Path) -> subprocess.Popen[bytes]:
        """Start the run, or go on with it."""
        self.add_second()
        command = [*BEGIN, "--ray", self.address, "--out", str(folder)]
        return subprocess.Popen(command, cwd=ROOT, stdout=subprocess.DEVNULL)

    def close(self) -> None:
        """End the cluster."""
        self._cluster.shutdown()


@contextmanager
def two_nodes() -> Iterator[TwoNodes]:
    """Start the cluster, and end it."""
    nodes = TwoNodes()
    try:
        yield nodes
    finally:
        nodes.close()


def find_actors() -> list[int]:
    """The processes of workers in the clusters of this process: Ray calls each after its class."""
    found = []
    for process in psutil.Process().children(recursive=True):
        with suppress(psutil.Error):
            if process.cmdline()[:1] and process.cmdline()[0].startswith("ray::_Actor"):
                found.append(process.pid)
    return found


def kill_once(
    nodes: TwoNodes, victim: Victim, folder: Path, whole: dict[str, Lines], seconds: float | None
) -> Found:
    """Kill somebody in a run, have it end, and compare its journals.

    Args:
        nodes: where it runs.
        victim: who is killed.
        folder: the run folder.
        whole: the journals of an undisturbed run.
        seconds: when, after the command began; None: when the first conversation is there.
    """
    command = nodes.start(folder)
    if seconds is None:
        journal = folder / "conversations.jsonl"
        while not journal.exists() or not journal.stat().st_size:
            time.sleep(0.01)
    else:
        time.sleep(seconds)
    nodes.kill(victim, command)
    code = command.wait()
    unfinished = code != 0
    tries = 0
    while code != 0:
        tries += 1
        if tries > 3:
            raise RuntimeError(f"a run in {folder} ended with code {code}, {tries} times")
        code = nodes.start(folder).wait()
    return Found(1, int(unfinished), 0, *count_differences(folder, whole))


def main() -> None:
    """Kill and print."""
    parser = argparse.ArgumentParser(prog="python -m tests.ray_kills", description=__doc__)
    parser.add_argument("--kills", type=int, default=60, help="how often each is killed")
    options = parser.parse_args()
    found: dict[str, dict[str, int]] = {}
    with tempfile.TemporaryDirectory() as directory, two_nodes() as nodes:
        base = Path(directory)
        whole = journal_lines(replay(base / "whole").path)
        started = time.monotonic()
        nodes.start(base / "timed").wait()
        seconds = time.monotonic() - started
        for victim in get_args(Victim):
            sums = Found()
            for kill in range(options.kills):
                moment = random.Random(f"{victim} {kill}").uniform(0.3, 1.0) * seconds
                sums += kill_once(nodes, victim, base / f"{victim}-{kill}", whole, moment)
                print(f"{victim} {sums}", flush=True)
            names = ("points", "unfinished", "lost", "doubled")
            found[victim] = {name: getattr(sums, name) for name in names}
    print(json.dumps(found))


if __name__ == "__main__":
    main()
