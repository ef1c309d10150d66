"""The server's own Python environment: made once, reused by every start.

vLLM and AutoGen cannot share one (they want different protobuf), so the server's lives in the cache folder
and the client speaks HTTP. Its folder's name holds a hash of its requirements; a stamp that is written last
tells a whole environment from one whose making was interrupted.
"""

from __future__ import annotations

import hashlib
import shutil
import sys
from collections.abc import Callable
from pathlib import Path

from scenarios.cache import building, cache_dir
from scenarios.errors import OperationalError
from scenarios.steps import Listener, StepProgress, silent
from scenarios.transcript import Frozen
from scenarios.weights import PIP_BEGINS, pip_reason
from simulator.serving.machine import MachineKind, machine_kind
from simulator.serving.supervised import run_supervised

STAMP = "complete"
"""Name of the file that says that an environment is whole."""


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
    """The server's environment, made when there is no whole one.

    Args:
        kind: which build of vLLM; None: found out by looking at the machine.
        requirements: requirements file; None: the one for `kind`.
        cache: cache folder; None: `cache_dir()`.
        on_progress: told of installed packages.

    Raises:
        OperationalError: the environment cannot be made (pip's reason is given) or the disk is full.
    """
    kind = kind or machine_kind()
    requirements = requirements or Path(__file__).with_name(f"server-constraints-{kind}.txt")
    text = requirements.read_text(encoding="utf-8")
    key = hashlib.sha256(f"{text}\n{sys.version}".encode()).hexdigest()[:12]
    folder = (cache or cache_dir()) / "server" / f"{kind}-{key}"
    environment = ServerEnvironment(kind=kind, python=folder / "bin" / "python")
    if (folder / STAMP).is_file():
        return environment
    with building(folder, on_progress):
        if not (folder / STAMP).is_file():
            _make(folder, requirements, kind, on_progress)
            (folder / STAMP).write_text(text, encoding="utf-8")
    return environment


def _make(folder: Path, requirements: Path, kind: MachineKind, on_progress: Listener) -> None:
    """Make it in place (an environment cannot be moved), from nothing."""
    shutil.rmtree(folder, ignore_errors=True)
    python = folder / "bin" / "python"
    _run([sys.executable, "-m", "venv", "--without-pip", str(folder)], lambda line: None)
    install = [sys.executable, "-m", "pip", "--python", str(python), "install", "--no-input"]
    install += ["--disable-pip-version-check", "--progress-bar=off", "-r", str(requirements)]
    # The CPU file is closed: what it leaves out must stay out.
    install += ["--no-deps", "--only-binary=:all:"] if kind == "cpu" else []
    _run(install, _PipProgress(requirements, kind, on_progress))


class _PipProgress:
    """Reads pip's output line by line and tells how far it is."""

    def __init__(self, requirements: Path, kind: MachineKind, on_progress: Listener) -> None:
        lines = requirements.read_text(encoding="utf-8").splitlines()
        listed = sum(1 for line in lines if line.strip() and not line.startswith("#"))
        self._total = listed if kind == "cpu" else None
        self._on_progress = on_progress
        self._collected = 0

    def __call__(self, line: str) -> None:
        if line.startswith(PIP_BEGINS):
            self._tell("downloading the model server", self._collected)
            self._collected += 1
        elif line.startswith("Installing collected packages"):
            self._tell("unpacking the model server", self._total or self._collected)

    def _tell(self, step: str, done: int) -> None:
        self._on_progress(StepProgress(step=step, done=done, total=self._total, unit="packages"))


def _run(command: list[str], on_line: Callable[[str], None]) -> None:
    ended = run_supervised(command, on_line=on_line)
    if ended.code != 0:
        raise OperationalError(
            f"cannot make the model server's environment: {pip_reason(ended.lines)}. "
            "Check the network, the disk and pip's configuration, and start again."
        )
