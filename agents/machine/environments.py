"""Separate Python environments for programs whose packages conflict with ours.

The user's own pip makes each once in the cache folder; later starts reuse it. The folder's name holds a hash
of the requirements. A stamp file, written last, marks an environment as whole.
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
"""Name of the file that marks an environment as whole."""


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
        install: the arguments of `pip install`.
        owner: the environment's owner as the user reads it: `the model server`.
        total: number of packages; None: not known beforehand.
        on_progress: told of installed packages.

    Raises:
        OperationalError: it cannot be made (with pip's reason), or the disk is full.
    """
    key = hashlib.sha256(f"{requirements}\n{sys.version}".encode()).hexdigest()[:12]
    folder = target.with_name(f"{target.name}-{key}")
    python = folder / "bin" / "python"
    if (folder / STAMP).is_file():
        return python
    with building(folder, on_progress):
        if not (folder / STAMP).is_file():
            # Made in place, from scratch: an environment cannot be moved.
            shutil.rmtree(folder, ignore_errors=True)
            _run([sys.executable, "-m", "venv", "--without-pip", str(folder)], owner, lambda line: None)
            pip = [sys.executable, "-m", "pip", "--python", str(python), "install", "--no-input"]
            pip += ["--disable-pip-version-check", "--progress-bar=off", *install]
            _run(pip, owner, _PipProgress(owner, total, on_progress))
            (folder / STAMP).write_text(requirements, encoding="utf-8")
    return python


class _PipProgress:
    """Reads pip's output line by line and reports progress."""

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
