"""A conversation that is cut off goes on at its last whole turn, and nothing of that turn is asked again.

The run is the recorded demo: ten conversations of two turns, one after the other, so that a kill is between
two turns and not in the middle of others.
"""

from __future__ import annotations

import asyncio
import os
import signal
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from unittest.mock import patch

import pytest

from hallulab.agents.models.recording import Recording
from hallulab.simulator.engine.models import RunSettings
from hallulab.simulator.engine.run import run_experiment
from hallulab.simulator.records.experiment_file import load_experiment
from hallulab.simulator.records.folder import RunFolder
from tests.demo import EXPERIMENT, MODEL, RECORDING
from tests.kit import forked_runs
from tests.kit.kill_points import InLine, Lines, journal_lines

TURNS = 20
"""What the whole run has."""
SOME = (0, 7, 12, TURNS - 1)
"""The first and the last one, one within a conversation and one between two."""


def hold(folder: Path, asked: Path, place: InLine | None = None) -> None:
    """Hold the conversations that a folder lacks.

    Args:
        folder: the run folder.
        asked: a file that gets a line for each question to a model.
        place: where this process is killed; None: nowhere.
    """
    get = Recording.get
    descriptor = os.open(asked, os.O_WRONLY | os.O_CREAT | os.O_APPEND)

    def get_and_note(recording: Recording, kind: str, key: str) -> object:
        if kind == "model":
            os.write(descriptor, f"{key}\n".encode())
        return get(recording, kind, key)

    if place is not None:
        place.end_there()
    experiment = load_experiment(EXPERIMENT, {"model": MODEL, "concurrency": 1})
    settings = RunSettings(replay=RECORDING, quiet=True)
    with patch.object(Recording, "get", get_and_note):
        asyncio.run(run_experiment(experiment, RunFolder(folder), settings, simulate=True, judge=False))


def fork(folder: Path, asked: Path, place: InLine | None = None) -> int | None:
    process = forked_runs.FORKING.Process(target=hold, args=(folder, asked, place))
    process.start()
    process.join()
    return process.exitcode


@pytest.fixture(scope="module")
def driver(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ProcessPoolExecutor]:
    """A process to fork from, which has done the run."""
    place = tmp_path_factory.mktemp("driver")
    with forked_runs.driver() as process:
        process.submit(hold, place / "run", place / "asked").result()
        yield process


@dataclass(frozen=True)
class Whole:
    """A run that nobody killed."""

    conversations: Lines
    """Its journal."""
    asked: Lines
    """What was asked."""
    probes: Lines
    """What each start asks to learn which model answers, also where nothing is lacking."""


@pytest.fixture(scope="module")
def whole(driver: ProcessPoolExecutor, tmp_path_factory: pytest.TempPathFactory) -> Whole:
    place = tmp_path_factory.mktemp("whole")
    for asked in ("asked", "probes"):
        assert driver.submit(fork, place / "run", place / asked).result() == 0
        assert not (place / "run" / "turns.jsonl").exists()
    counts = [Counter((place / asked).read_text().split()) for asked in ("asked", "probes")]
    return Whole(journal_lines(place / "run")["conversations.jsonl"], *counts)


@pytest.mark.parametrize(
    "turn", [pytest.param(turn, marks=() if turn in SOME else pytest.mark.slow) for turn in range(TURNS)]
)
def test_killed_behind_a_turn_it_goes_on_with_the_next_one(
    driver: ProcessPoolExecutor, whole: Whole, tmp_path: Path, turn: int
) -> None:
    run, asked = tmp_path / "run", tmp_path / "asked"
    behind = InLine(turn, 1.0, "turns.jsonl")
    assert driver.submit(partial(fork, place=behind), run, asked).result() == -signal.SIGKILL
    held = (run / "conversations.jsonl").read_text().count("\n")
    assert held == turn // 2
    assert (run / "turns.jsonl").read_text().count("\n") == turn + 1 - 2 * held
    assert driver.submit(fork, run, asked).result() == 0
    assert journal_lines(run)["conversations.jsonl"] == whole.conversations
    assert Counter(asked.read_text().split()) == whole.asked + whole.probes
    assert not (run / "turns.jsonl").exists()


def test_the_line_of_a_turn_that_was_cut_in_two_costs_that_turn(
    driver: ProcessPoolExecutor, whole: Whole, tmp_path: Path
) -> None:
    run, asked = tmp_path / "run", tmp_path / "asked"
    assert driver.submit(fork, run, asked, InLine(1, 0.5, "turns.jsonl")).result() == -signal.SIGKILL
    assert driver.submit(fork, run, asked).result() == 0
    assert journal_lines(run)["conversations.jsonl"] == whole.conversations
    again = Counter(asked.read_text().split()) - whole.asked - whole.probes
    assert 0 < again.total() < 10
