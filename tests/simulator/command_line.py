"""Runs `hallulab` in the process, as a shell would."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from hallulab.simulator.cli.main import main
from hallulab.testing.forked_runs import Ended

CodeAndError = Callable[..., tuple[int, str]]
"""Runs a command: its arguments → exit code and standard error."""


class CommandLine:
    """Runs commands; none of them may print a traceback."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
        self._monkeypatch = monkeypatch
        self._capsys = capsys

    def __call__(self, *arguments: str | Path) -> Ended:
        self._monkeypatch.setattr("sys.argv", ["hallulab", *map(str, arguments)])
        with pytest.raises(SystemExit) as ended:
            main()
        captured = self._capsys.readouterr()
        assert "Traceback" not in captured.err
        return Ended(int(ended.value.code or 0), captured.out, captured.err)

    def code_and_error(self, *arguments: str | Path) -> tuple[int, str]:
        """Exit code and standard error of a command."""
        ended = self(*arguments)
        return ended.code, ended.err
