"""Odd surroundings of every command: streams, folders and limits that are not as usual; one sentence, no loss."""

from __future__ import annotations

import os
import resource
import shutil
import tempfile
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest

from hallulab.testing.forked_runs import Ended
from tests.simulator.cli.every_command import COMMANDS, State, Workshop, state_of
from tests.simulator.cli.test_hardships import without_privileges

READING = {"help": "--help", "list": "list detectors", "audit": "audit run"}
EVERY = {**COMMANDS, **READING}


def check_sentence(name: str, ended: Ended) -> None:
    """It succeeded, or it says in one sentence why not."""
    *warnings, told = ended.err.splitlines() or [""]
    assert "Traceback" not in ended.err, (name, ended)
    assert ended.code in (0, 1, 2), (name, ended)
    assert all(line.startswith("warning: ") for line in warnings), (name, ended)
    assert ended.code == 0 or told.startswith("error: "), (name, ended)


def odd_home(home: str, **more: str) -> None:
    """This process's user has another home, and no cache elsewhere."""
    os.environ.pop("HALLULAB_CACHE")
    os.environ.pop("XDG_CACHE_HOME", None)
    os.environ.update(HOME=home, **more)
    tempfile.tempdir = None


def unwritable_home(place: Path) -> None:
    """The home belongs to nobody who runs this process, and the folder for temporary files is missing."""
    odd_home(str(place.parent / "home"), TMPDIR=str(place.parent / "missing"))
    without_privileges()


def leave_deleted_folder(place: Path) -> None:
    """The working directory is deleted."""
    gone = place / "gone"
    gone.mkdir()
    os.chdir(gone)
    gone.rmdir()


def few_handles(number: int) -> None:
    """This process may open so many files more, besides the two that it prints into."""
    spare = [os.open(os.devnull, os.O_RDONLY) for _ in range(number + 2)]
    resource.setrlimit(resource.RLIMIT_NOFILE, (max(spare) + 1, max(spare) + 1))
    for handle in spare:
        os.close(handle)


SURROUNDINGS: dict[str, Callable[[Path], object]] = {
    "home is a file": lambda place: odd_home("/etc/passwd", TMPDIR="/nowhere"),
    "home is missing": lambda place: odd_home("/nowhere/home", XDG_CACHE_HOME="relative/cache"),
    "home is not ours": unwritable_home,
    "folder is deleted": leave_deleted_folder,
    "handles": lambda place: few_handles(4),
    "64 handles": lambda place: few_handles(58),
}


@pytest.mark.slow
@pytest.mark.parametrize("surroundings", SURROUNDINGS)
def test_every_command_does_its_work_or_says_why_not(
    workshop: Workshop, tmp_path: Path, surroundings: str
) -> None:
    before = state_of(workshop.start)
    (tmp_path / "home").mkdir(mode=0o555)
    for name, line in EVERY.items():
        place = workshop.new(tmp_path / name)
        enter = partial(_surround, surroundings, place)
        ended = workshop.run(line.format(fixed=workshop.fixed).split(), place, enter)
        check_sentence(name, ended)
        check_not_lost(before, state_of(place))
        if surroundings == "64 handles" or (name in READING and surroundings != "handles"):
            assert ended.code == 0 or surroundings == "folder is deleted", (name, ended)
        shutil.rmtree(place)


def _surround(surroundings: str, place: Path) -> None:
    SURROUNDINGS[surroundings](place)


def check_not_lost(before: State, after: State) -> None:
    """Each file of before is there; journals have their lines."""
    assert before.keys() <= after.keys()
    for name, held in before.items():
        if name.endswith(".jsonl"):
            assert held <= after[name], name
