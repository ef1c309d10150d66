"""A command is a function in a file: in `simulator/cli`, or in another distribution."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from hallulab.simulator import cli
from hallulab.simulator.cli import main
from tests.simulator.command_line import CommandLine

COUNT = '''
from pathlib import Path

import typer


def count(folder: Path) -> None:
    """Count the files of a folder."""
    typer.echo(f"{sum(1 for _ in folder.iterdir())} files")
'''


@pytest.fixture(autouse=True)
def forget_added_commands(monkeypatch: pytest.MonkeyPatch) -> None:
    """What a test adds to the app is gone after it."""
    monkeypatch.setattr(main, "COMMANDS", dict(main.COMMANDS))
    monkeypatch.setattr(main.app, "registered_commands", list(main.app.registered_commands))


@pytest.fixture
def installed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A distribution with two commands, one of which cannot be imported, as pip leaves it."""
    site = tmp_path / "site"
    about = site / "counting-1.0.dist-info"
    about.mkdir(parents=True)
    (site / "counting.py").write_text(COUNT)
    (about / "METADATA").write_text("Metadata-Version: 2.1\nName: counting\nVersion: 1.0\n")
    (about / "entry_points.txt").write_text(
        "[hallulab.commands]\ncount = counting:count\nbroken = nowhere:count\n"
    )
    monkeypatch.syspath_prepend(site)
    monkeypatch.delitem(sys.modules, "counting", raising=False)


@pytest.mark.usefixtures("installed")
def test_a_command_of_another_distribution_runs(hallulab: CommandLine, tmp_path: Path) -> None:
    papers = tmp_path / "papers"
    papers.mkdir()
    (papers / "one.txt").touch()
    (papers / "two.txt").touch()
    assert hallulab("count", papers).out == "2 files\n"


@pytest.mark.usefixtures("installed")
def test_one_that_cannot_be_loaded_is_named_where_it_is_wanted(hallulab: CommandLine) -> None:
    assert hallulab.code_and_error("broken") == (
        2,
        "error: command 'broken': cannot load its entry point nowhere:count "
        "(ModuleNotFoundError: No module named 'nowhere').\n",
    )
    assert hallulab("list", "scenarios").code == 0


def test_a_file_in_the_folder_of_commands_adds_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "count.py").write_text(f"{COUNT}\n\nCOMMANDS = {{'count': count}}\n")
    monkeypatch.setattr(cli, "__path__", [*cli.__path__, str(tmp_path)])
    monkeypatch.delitem(sys.modules, f"{cli.__name__}.count", raising=False)
    assert list(main.find_commands()) == [*main.ORDER, "count"]
