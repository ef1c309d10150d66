"""The shape of code on a small checkout."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from benchmarks import house

SOURCES = {
    "simulator/run.py": '''
"""Run."""
from hallulab.simulator.ends import finish
from hallulab.simulator.room import Room


def run_experiment(experiment: str) -> None:
    room = Room(experiment)
    _check(experiment)
    room.open()
    finish(room)
    finish(1)


def _check(experiment: str) -> None:
    """Check."""
''',
    "simulator/room.py": '''
"""A room."""
from hallulab.agents.door import unlock


class Room:
    """A room."""

    def __init__(self, name: str) -> None:
        self.name = name

    def open(self) -> None:
        # The door is below the floors that count.
        unlock(self.name)
''',
    "simulator/ends.py": '''
"""Ends."""
from rich.table import Table

KEPT = 1
"""What is kept."""
HEAD = "| --- |"


def finish(value: object) -> None:
    Table()


def render_page() -> str:
    return HEAD
''',
    "agents/door.py": '''
"""A door."""


def unlock(name: str) -> None:
    pass
''',
}


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    for name, text in SOURCES.items():
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text.lstrip())
    return tmp_path


def test_walk_enters_what_gets_the_experiment_in_the_order_of_the_code(checkout: Path) -> None:
    walked = house.walk(house.load_modules(checkout))
    # `_check` is a return to the file of `run_experiment`, and `Room.open` one to that of the room.
    assert walked.stays == [
        "simulator.run",
        "simulator.room",
        "simulator.run",
        "simulator.room",
        "simulator.ends",
    ]
    assert walked.returns == 2


def test_shape_of_a_checkout(checkout: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert house.main(["--json", "--root", str(checkout)]) == 0
    assert json.loads(capsys.readouterr().out) == {
        "files": 4,
        "lines": 47,
        "stays": 5,
        "returns": 2,
        "private_used_once_per_1000": 21.3,
        "attribute_docstrings_per_1000": 21.3,
        "comment_percent": 2.1,
        "modules_that_print_a_table": 1,
        "modules_that_render_a_page": 1,
        "modules_that_write_markdown_tables": 1,
    }


def test_table_and_walk_are_printed(checkout: Path, capsys: pytest.CaptureFixture[str]) -> None:
    house.main(["--root", str(checkout)])
    assert "| stays | 5 |" in capsys.readouterr().out
    house.main(["--walk", "--root", str(checkout)])
    assert capsys.readouterr().out.splitlines()[0] == "simulator.run"
