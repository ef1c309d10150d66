"""The command where another package has taken the name of one of ours."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from hallulab.entry_point import NAMES, taken_packages
from tests.places import ROOT


def started(folder: Path, path: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-c", "from hallulab.entry_point import main; main()", "--version"]
    environ = {**os.environ, "PYTHONPATH": path}
    return subprocess.run(command, cwd=folder, env=environ, capture_output=True, text=True)


@pytest.mark.parametrize("name", NAMES)
def test_a_foreign_package_before_ours_is_one_sentence(tmp_path: Path, name: str) -> None:
    foreign = tmp_path / "sdk" / name / "__init__.py"
    foreign.parent.mkdir(parents=True)
    foreign.write_text("raise RuntimeError('not imported')\n")
    ended = started(tmp_path, f"{tmp_path / 'sdk'}{os.pathsep}{ROOT}")
    assert (ended.returncode, ended.stdout) == (2, "")
    assert ended.stderr == (
        f"error: Python finds another package `{name}` in the place of hallulab's, {str(foreign)!r}. "
        "Take its folder off PYTHONPATH, or install hallulab in an environment of its own.\n"
    )


def test_a_package_that_was_written_over_ours_is_one_sentence(tmp_path: Path) -> None:
    for name in NAMES:
        (tmp_path / name).mkdir()
        (tmp_path / name / "__init__.py").write_text('"""Ours."""\n')
    shutil.copytree(ROOT / "hallulab", tmp_path / "hallulab")
    (tmp_path / "agents" / "__init__.py").write_text('"""An SDK."""\nfrom agents.agent import Agent\n')
    ended = started(tmp_path, str(tmp_path))
    assert ended.returncode == 2
    assert ended.stderr.startswith(
        "error: Python finds another package `agents` in the place of hallulab's, "
    )


def test_our_own_packages_are_taken_for_ours() -> None:
    assert taken_packages() == []
    assert started(ROOT, str(ROOT)).returncode == 0
