"""Runs `hallulab` in the process, as a shell would."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import typer

from hallulab.simulator.cli.main import main
from tests.kit.forked_runs import Ended

CodeAndError = Callable[..., tuple[int, str]]
"""Runs a command: its arguments → exit code and standard error."""


_build_command = typer.main.get_command
_built: list[tuple[list[Any], Any]] = []
"""Commands → their parser."""


def get_command(app: typer.Typer) -> Any:
    """Stand for `typer.main.get_command`, which makes the parser of all commands anew for each of them.

    In one process that would take most of the time.
    """
    commands = [*app.registered_commands, *app.registered_groups]
    for known, built in _built:
        if known == commands:
            return built
    _built.append((commands, _build_command(app)))
    return _built[-1][1]


class CommandLine:
    """Runs commands; none of them may print a traceback."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
        self._monkeypatch = monkeypatch
        self._capsys = capsys

    def __call__(self, *arguments: str | Path) -> Ended:
        self._monkeypatch.setattr("sys.argv", ["hallulab", *map(str, arguments)])
        self._monkeypatch.setattr("typer.main.get_command", get_command)
        with pytest.raises(SystemExit) as ended:
            main()
        captured = self._capsys.readouterr()
        assert "Traceback" not in captured.err
        return Ended(int(ended.value.code or 0), captured.out, captured.err)

    def code_and_error(self, *arguments: str | Path) -> tuple[int, str]:
        """Exit code and standard error of a command."""
        ended = self(*arguments)
        return ended.code, ended.err
