"""Python environments of their own for programs whose packages cannot stand beside ours.

Each is made once in the cache folder by the user's own pip and reused by every start. Its folder's name holds
a hash of its requirements; a stamp that is written last tells a whole environment from one whose making was
interrupted.
"""

from __future__ import annotations

import hashlib
import shutil
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

from agents.machine.cache import building
from agents.machine.progress_events import Listener, StepProgress
from agents.machine.supervised import run_supervised
from agents.machine.weights import PIP_BEGINS, pip_reason
from scenarios.errors import OperationalError

STAMP = "complete"
"""Name of the file that says that an environment is whole."""


def python_environment(
    target: Path,
    requirements: str,
    install: Sequence[str],
    *,
    owner: str,
    total: int | None,
    on_progress: Listener,
) -> Path:
    """The interpreter of an environment, which is made when there is no whole one.

    Args:
        target: its folder, to whose name a hash of the requirements is added.
        requirements: all that decides what is installed; other ones make another environment.
        install: what follows `pip install`.
        owner: whose environment it is, as the user reads it: `the model server`.
        total: number of packages; None: not known beforehand.
        on_progress: told of installed packages.

    Raises:
        OperationalError: it cannot be made (pip's reason is given) or the disk is full.
    """
    key = hashlib.sha256(f"{requirements}\n{sys.version}".encode()).hexdigest()[:12]
    folder = target.with_name(f"{target.name}-{key}")
    python = folder / "bin" / "python"
    if (folder / STAMP).is_file():
        return python
    with building(folder, on_progress):
        if not (folder / STAMP).is_file():
            # Made in place, from nothing: an environment cannot be moved.
            shutil.rmtree(folder, ignore_errors=True)
            _run([sys.executable, "-m", "venv", "--without-pip", str(folder)], owner, lambda line: None)
            pip = [sys.executable, "-m", "pip", "--python", str(python), "install", "--no-input"]
            pip += ["--disable-pip-version-check", "--progress-bar=off", *install]
            _run(pip, owner, _PipProgress(owner, total, on_progress))
            (folder / STAMP).write_text(requirements, encoding="utf-8")
    return python


class _PipProgress:
    """Reads pip's output line by line and tells how far it is."""

    def __init__(self, owner: str, total: int | None, on_progress: Listener) -> None:
        self._owner = owner
        self._total = total
        self._on_progress = on_progress
        self._collected = 0

    def __call__(self, line: str) -> None:
        if line.startswith(PIP_BEGINS):
            self._tell(f"downloading {self._owner}", self._collected)
            self._collected += 1
        elif line.startswith("Installing collected packages"):
            self._tell(f"unpacking {self._owner}", self._total or self._collected)

    def _tell(self, step: str, done: int) -> None:
        self._on_progress(StepProgress(step=step, done=done, total=self._total, unit="packages"))


def _run(command: list[str], owner: str, on_line: Callable[[str], None]) -> None:
    ended = run_supervised(command, on_line=on_line)
    if ended.code != 0:
        raise OperationalError(
            f"cannot make {owner}'s environment: {pip_reason(ended.lines)}. "
            "Check the network, the disk and pip's configuration, and start again."
        )
