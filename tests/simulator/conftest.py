"""What tests of the command line share."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.simulator.command_line import CodeAndError, CommandLine


@pytest.fixture
def code_and_error(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> CodeAndError:
    """Runs `hallulab` with a cache of its own; gives exit code and standard error."""
    monkeypatch.setenv("HALLULAB_CACHE", str(tmp_path / "cache"))
    return CommandLine(monkeypatch, capsys).code_and_error
