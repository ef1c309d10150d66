"""Hallulab's packages beside others of the same names."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.places import ROOT

FLOORS = ("agents", "chatbots", "detectors", "scenarios", "simulator")
MAIN = "from hallulab.__main__ import main; main()"


def python(code: str, folder: Path, **environ: str) -> subprocess.CompletedProcess[str]:
    """Run code in a process of its own, with a folder as the working directory."""
    command = [sys.executable, "-c", code]
    clean = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    return subprocess.run(command, cwd=folder, env=clean | environ, capture_output=True, text=True)


@pytest.mark.parametrize("floor", FLOORS)
def test_a_floor_is_no_package_of_its_own(tmp_path: Path, floor: str) -> None:
    ended = python(f"import {floor}", tmp_path)
    assert ended.stderr.splitlines()[-1] == f"ModuleNotFoundError: No module named '{floor}'"


@pytest.mark.parametrize("floor", FLOORS)
def test_a_floor_is_not_loaded_under_a_second_name(floor: str) -> None:
    ended = python(f"import {floor}", ROOT)
    assert ended.stderr.splitlines()[-1] == (
        f"ImportError: this package is part of hallulab: import hallulab.{floor}"
    )


def test_the_command_works_where_others_have_such_packages(tmp_path: Path) -> None:
    for floor in FLOORS:
        (tmp_path / floor).mkdir()
        (tmp_path / floor / "__init__.py").write_text("raise RuntimeError('not imported')\n")
    ended = python(
        f"import sys; sys.argv[1:] = ['list', 'chatbots']; {MAIN}", tmp_path, PYTHONPATH=str(tmp_path)
    )
    assert (ended.returncode, ended.stderr) == (0, "")
    assert "fact-checker" in ended.stdout


def test_each_link_is_a_folder_at_the_top() -> None:
    links = {path.name: os.readlink(path) for path in (ROOT / "hallulab").iterdir() if path.is_symlink()}
    assert links == {floor: f"../{floor}" for floor in FLOORS}
