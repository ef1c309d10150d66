"""The server's own Python environment, in the cache folder. The client speaks HTTP with it.

vLLM and AutoGen cannot share an environment, because they need different versions of protobuf.
"""

from __future__ import annotations

from pathlib import Path

from hallulab.agents.machine.cache import locate_cache
from hallulab.agents.machine.environments import python_environment
from hallulab.agents.machine.progress_events import Listener, silent
from hallulab.agents.serving.machine import MachineKind, detect_machine_kind
from hallulab.scenarios.transcript import Frozen


class ServerEnvironment(Frozen):
    """A Python environment with vLLM in it."""

    kind: MachineKind
    """Which build of vLLM it holds."""
    python: Path
    """Its interpreter."""


def server_environment(
    *,
    kind: MachineKind | None = None,
    requirements: Path | None = None,
    cache: Path | None = None,
    on_progress: Listener = silent,
) -> ServerEnvironment:
    """Return the server's environment; make it if there is no whole one.

    Args:
        kind: which build of vLLM; None: the one for this machine.
        requirements: requirements file; None: the one for `kind`.
        cache: cache folder; None: `locate_cache()`.
        on_progress: told of installed packages.

    Raises:
        OperationalError: the environment cannot be made (pip's reason is given) or the disk is full.
    """
    kind = kind or detect_machine_kind()
    requirements = requirements or Path(__file__).with_name(f"server-constraints-{kind}.txt")
    text = requirements.read_text(encoding="utf-8")
    install = ["-r", str(requirements)]
    listed = sum(1 for line in text.splitlines() if line.strip() and not line.startswith("#"))
    # The CPU file lists everything: what it leaves out must not be installed.
    install += ["--no-deps", "--only-binary=:all:"] if kind == "cpu" else []
    python = python_environment(
        (cache or locate_cache()) / "server" / kind,
        text,
        install,
        owner="the model server",
        total=listed if kind == "cpu" else None,
        on_progress=on_progress,
    )
    return ServerEnvironment(kind=kind, python=python)
