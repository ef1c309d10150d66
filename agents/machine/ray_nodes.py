"""Check that all machines of a Ray cluster have the same hallulab: other code gives other results."""

from __future__ import annotations

import importlib
import platform
from collections.abc import Sequence
from hashlib import sha256
from importlib.metadata import version as installed
from pathlib import Path
from typing import Any, NamedTuple

from hallulab.scenarios.errors import OperationalError, UsageError
from hallulab.scenarios.files.json_text import digest

ANSWER_S = 120.0
"""Seconds in which a machine must say what it has. The first process there has to be started."""

_SUFFIXES = {".py", ".txt", ".yaml", ".json"}
"""Files that decide results: code, prompts and tuned numbers."""


class Installed(NamedTuple):
    """A machine's processors and packages."""

    hallulab: str
    files: str
    python: str
    """Version of Python, without its last number."""


def identify_installed() -> Installed:
    """Return what this machine has."""
    here = Path(importlib.import_module("hallulab").__file__ or "").parent
    # A checkout has its floors as links, which are not followed by themselves.
    links = [path for path in here.iterdir() if path.is_symlink()]
    files = {
        path.relative_to(here).as_posix(): sha256(path.read_bytes()).hexdigest()
        for room in (here, *links)
        for path in room.rglob("*")
        if path.suffix in _SUFFIXES
    }
    return Installed(installed("hallulab"), digest(files)[:16], ".".join(platform.python_version_tuple()[:2]))


def require_same_installed(address: str) -> None:
    """Ask every machine of the cluster that this process has joined what it has.

    Raises:
        UsageError: one has another hallulab or another Python, or none.
        OperationalError: one does not answer.
    """
    ray = importlib.import_module("ray")
    ask = ray.remote(num_cpus=0, max_retries=0)(identify_installed)
    asked = []
    for node in ray.nodes():
        if node["Alive"]:
            answer = ask.options(scheduling_strategy=pin_to_node(node["NodeID"])).remote()
            asked.append((node["NodeManagerAddress"], answer))
    found: list[tuple[str, Installed | None]] = []
    for machine, answer in asked:
        try:
            found.append((machine, ray.get(answer, timeout=ANSWER_S)))
        except ray.exceptions.RayTaskError:
            found.append((machine, None))
        except ray.exceptions.RayError as error:
            reason = str(error).splitlines()[0]
            raise OperationalError(
                f"--ray {address}: machine {machine} does not answer ({reason})."
            ) from error
    compare_installed(address, identify_installed(), found)


def compare_installed(address: str, here: Installed, there: Sequence[tuple[str, Installed | None]]) -> None:
    """Compare what machines have with what this one has.

    Args:
        address: where the cluster is, as it was given.
        there: the addresses of all, and what they have; None: hallulab cannot be imported.

    Raises:
        UsageError: one has something else.
    """
    for machine, found in there:
        if found == here:
            continue
        if found is None:
            what = "hallulab cannot be imported"
        elif found.python != here.python:
            what = f"Python is {found.python}, and here it is {here.python}"
        elif found.hallulab != here.hallulab:
            what = f"hallulab is {found.hallulab}, and here it is {here.hallulab}"
        else:
            what = f"hallulab is {found.hallulab} as here, with other code, prompts or tuned numbers"
        raise UsageError(
            f"--ray {address}: on machine {machine}, {what}. Install the same hallulab on all machines."
        )


def pin_to_node(node: str) -> Any:
    """Return the scheduling strategy of what runs on this node, by Ray's name of it, and nowhere else."""
    strategies: Any = importlib.import_module("ray.util.scheduling_strategies")
    return strategies.NodeAffinitySchedulingStrategy(node, soft=False)
