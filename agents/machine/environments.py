"""Separate Python environments for programs whose packages conflict with ours.

Each is made once in the cache folder, by uv or the user's own pip; later starts reuse it. The folder's name
holds a hash of the requirements. A stamp file, written last, marks an environment as whole.
"""

from __future__ import annotations

import hashlib
import shutil
import sys
from collections.abc import Sequence
from pathlib import Path

from hallulab.agents.machine.cache import Listener, StepProgress, building
from hallulab.agents.machine.installer import installers
from hallulab.agents.machine.supervised import Ended, run_supervised
from hallulab.agents.machine.weights import PIP_BEGINS, pip_reason
from hallulab.scenarios.errors import OperationalError

STAMP = "complete"
"""Name of the file that marks an environment as whole."""

_PIP_UNPACKS = "Installing collected packages"
_UV_BEGINS = "Downloading "
"""uv names only large packages."""
_UV_UNPACKS = "Prepared "


def python_environment(
    target: Path,
    requirements: str,
    install: Sequence[str],
    *,
    owner: str,
    total: int | None,
    on_progress: Listener,
) -> Path:
    """Return the interpreter of an environment; make the environment if there is no whole one.

    Args:
        target: its folder; a hash of the requirements is added to the name.
        requirements: everything that decides what is installed; others make another environment.
        install: the arguments of `pip install`, as far as uv has the same.
        owner: the environment's owner as the user reads it: `the model server`.
        total: number of packages; None: not known beforehand.

    Raises:
        OperationalError: it cannot be made (with pip's reason), or the disk is full.
    """
    folder = locate_environment(target, requirements)
    python = folder / "bin" / "python"
    if (folder / STAMP).is_file():
        return python
    with building(folder, on_progress):
        if not (folder / STAMP).is_file():
            # Made in place, from scratch: an environment cannot be moved.
            shutil.rmtree(folder, ignore_errors=True)
            made = [sys.executable, "-m", "venv", "--without-pip", str(folder)]
            _require(run_supervised(made, on_line=lambda line: None), owner)
            progress = _InstallProgress(owner, total, on_progress)
            for installer in installers(python):
                quiet = () if installer.uv else ("--progress-bar=off",)
                command = [*installer.command, *quiet, *install]
                ended = run_supervised(command, on_line=progress, environ=installer.environ)
                if ended.code == 0:
                    break
            _require(ended, owner)
            (folder / STAMP).write_text(requirements, encoding="utf-8")
    return python


def locate_environment(target: Path, requirements: str) -> Path:
    """Return the folder of an environment; arguments as for `python_environment`."""
    key = hashlib.sha256(f"{requirements}\n{sys.version}".encode()).hexdigest()[:12]
    return target.with_name(f"{target.name}-{key}")


def is_made(target: Path, requirements: str) -> bool:
    """Return whether there is a whole environment; arguments as for `python_environment`."""
    return (locate_environment(target, requirements) / STAMP).is_file()


class _InstallProgress:
    """Reads the output of pip or uv line by line and reports progress."""

    def __init__(self, owner: str, total: int | None, on_progress: Listener) -> None:
        self._owner = owner
        self._total = total
        self._on_progress = on_progress
        self._collected = 0

    def __call__(self, line: str) -> None:
        if line.startswith((*PIP_BEGINS, _UV_BEGINS)):
            self._tell(f"downloading {self._owner}", self._collected)
            self._collected += 1
        elif line.startswith((_PIP_UNPACKS, _UV_UNPACKS)):
            self._tell(f"unpacking {self._owner}", self._total or self._collected)

    def _tell(self, step: str, done: int) -> None:
        self._on_progress(StepProgress(step=step, done=done, total=self._total, unit="packages"))


def _require(ended: Ended, owner: str) -> None:
    if ended.code != 0:
        raise OperationalError(
            f"cannot make {owner}'s environment: {pip_reason(ended.lines)}. "
            "Check the network, the disk and pip's configuration, and start again."
        )
