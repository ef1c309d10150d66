"""Where what is begun on the pages goes, and what it may be about."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

from hallulab.scenarios.errors import UsageError
from hallulab.scenarios.packs.pack_files import list_built_in_packs
from hallulab.simulator.records.experiment import Experiment
from hallulab.simulator.records.folder import RunFolder
from hallulab.simulator.records.outputs import name_folder_by_time

RUNS = Path("runs")
"""Where runs are by default."""

MOST_OF_A_SECOND = 1000
"""Run folders that are named after one second at most."""


def choose_folder(paths: Sequence[Path]) -> Path:
    """Return the first of the shown folders that holds runs and is none itself; the default one is made.

    Raises:
        UsageError: there is none.
    """
    for path in paths:
        if not RunFolder(path).has_journal:
            if path == RUNS:
                path.mkdir(exist_ok=True)  # somebody's first run
            return path
    raise UsageError(
        f"{paths[0]} is a run folder, and what you say is saved in a folder of its own. Give a folder that "
        "holds run folders, too."
    )


def name_new_folders(parent: Path) -> Iterator[Path]:
    """Yield the names of a new run folder, by the time: the first that is free is right."""
    name = name_folder_by_time().name
    yield parent / name
    yield from (parent / f"{name}-{number}" for number in range(2, MOST_OF_A_SECOND))


def list_scenarios(experiment: Experiment) -> list[str]:
    """Return the scenarios that can be chosen: the experiment's, then the built-in ones."""
    return list(dict.fromkeys([experiment.scenario, *list_built_in_packs()]))
