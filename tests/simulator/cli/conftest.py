"""The command line, for the tests of commands."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.simulator.command_line import CommandLine


@pytest.fixture
def hallulab(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> CommandLine:
    """Runs a command in this process, with a cache of its own and 120 columns."""
    monkeypatch.setenv("HALLULAB_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("COLUMNS", "120")
    return CommandLine(monkeypatch, capsys)
