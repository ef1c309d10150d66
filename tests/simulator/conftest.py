"""What tests of the command line share."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.simulator.command_line import CodeAndError, CommandLine


@pytest.fixture
def hallulab(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> CommandLine:
    """Runs a command in this process, with a cache of its own and 120 columns."""
    monkeypatch.setenv("HALLULAB_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("COLUMNS", "120")
    return CommandLine(monkeypatch, capsys)


@pytest.fixture
def code_and_error(hallulab: CommandLine) -> CodeAndError:
    """Runs `hallulab`; gives exit code and standard error."""
    return hallulab.code_and_error
