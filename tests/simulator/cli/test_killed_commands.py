"""Commands that are killed at random moments: the same command again gives what an undisturbed one gives."""

from __future__ import annotations

import random
import shutil
import signal
from pathlib import Path

import pytest

from tests.disk_faults import DiskFault
from tests.kit.kill_points import is_torn
from tests.simulator.cli.every_command import State, Workshop, state_of

KILLED = {
    "run": 10,
    "detect": 8,
    "bench": 6,
    "annotate-next": 5,
    "annotate-add": 6,
    "export": 3,
    "export-hf": 3,
    "export-parquet": 3,
    "report": 6,
    "import": 3,
    "compact": 3,
    "init": 3,
}
"""Command → how often: `run`, `detect`, `bench`, `annotate`, `export` and `report` fifty times in all."""

IS_THERE = ("annotate-next", "init", "export-hf", "import")
"""Commands that refuse to write what is there already."""


@pytest.mark.slow
@pytest.mark.parametrize("name", KILLED)
def test_killed_at_a_random_moment_the_command_again_makes_it_whole(
    workshop: Workshop, tmp_path: Path, name: str
) -> None:
    """Half of the kills come in a step on the disk, a write after half of its data, and half at any time."""
    steps, whole = workshop.undisturbed(name, tmp_path / "whole")
    before, chance = state_of(workshop.start), random.Random(name)
    for number in range(KILLED[name]):
        place = workshop.new(tmp_path / str(number))
        if number % 2 == 0:
            step = chance.randrange(len(steps))
            fault = DiskFault(step, place, tmp_path / "seen", short=True, killed=True)
            assert workshop(name, place, fault.meet).code == -signal.SIGKILL
        else:
            workshop.kill(name, place, chance.random())
        check_lost(place, before)
        ended = workshop(name, place)
        assert ended.code == 0 or (ended.code == 2 and name in IS_THERE), ended
        assert state_of(place) == whole, number
        shutil.rmtree(place)


def check_lost(place: Path, before: State) -> None:
    """Each file of before is there, and can be read; a journal has its lines, and one at most is torn."""
    after = state_of(place)
    assert before.keys() <= after.keys()
    for name, held in before.items():
        if name.endswith(".jsonl"):
            assert held <= after[name], name
    assert len([path for path in place.rglob("*.jsonl") if is_torn(path)]) <= 1
