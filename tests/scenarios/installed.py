"""Distributions and modules that appear while a test runs."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest


def install(folder: Path, monkeypatch: pytest.MonkeyPatch, code: str, **targets: str) -> None:
    """Install a distribution with the module `theirs` for the test.

    Args:
        code: the module's code.
        targets: group of entry points without `hallulab.` → its only line.
    """
    about = folder / "theirs-1.0.dist-info"
    about.mkdir()
    (about / "METADATA").write_text("Name: theirs\nVersion: 1.0\n")
    lines = (f"[hallulab.{group}]\n{line}\n" for group, line in targets.items())
    (about / "entry_points.txt").write_text("".join(lines))
    (folder / "theirs.py").write_text(code)
    monkeypatch.delitem(sys.modules, "theirs", raising=False)
    monkeypatch.syspath_prepend(folder)
