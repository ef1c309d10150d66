"""Workers that have errors written plant what one process plants, also where one dies."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path

import pytest

from hallulab.simulator.engine.models import RunSettings
from hallulab.simulator.options.data import PlantOptions
from hallulab.simulator.planting.command import plant_from_options
from hallulab.simulator.planting.plant import Planting
from tests.places import RECORDINGS
from tests.simulator.engine.dying_workers import die_in
from tests.simulator.engine.worker_places import PLACES, WorkerPlace, open_place


@pytest.fixture(scope="module", params=PLACES)
def place(request: pytest.FixtureRequest) -> Iterator[WorkerPlace]:
    with open_place(request.param) as place:
        yield place


def plant_recorded(out: Path, place: WorkerPlace | None, died: Path | None) -> Planting:
    """Plant what a model wrote once: here, or by two workers of which one dies and makes a file."""
    options = PlantOptions(
        "consumer-grievance-india",
        out=out,
        count=24,
        contexts=(1,),
        turns=(0, 2),
        fluent=True,
        model="qwen2.5-coder-1.5b",
        replay=RECORDINGS / "planted" / "fluent.jsonl.gz",
        quiet=True,
    )
    if place is not None:
        options = replace(options, workers=2, ray=place.ray)
    prepare = None if died is None else partial(die_in, "planting.fluent.generate_error", died)
    with pytest.MonkeyPatch.context() as patched:
        settings = replace(RunSettings.from_options(options), prepare_worker=prepare)
        patched.setattr(RunSettings, "from_options", lambda _: settings)
        return asyncio.run(plant_from_options(options))


@pytest.fixture(scope="module")
def planted(place: WorkerPlace, tmp_path_factory: pytest.TempPathFactory) -> tuple[Planting, Planting]:
    """What two workers plant, and what this process does."""
    folder = tmp_path_factory.mktemp("planted")
    by_two = plant_recorded(folder / "two", place, folder / "died")
    assert (folder / "died").exists()
    return by_two, plant_recorded(folder / "here", None, None)


@pytest.mark.slow
def test_two_workers_of_which_one_dies_plant_what_one_process_plants(
    planted: tuple[Planting, Planting],
) -> None:
    by_two, here = planted
    assert by_two == here
    assert (len(here.replies), here.dropped.total()) == (14, 17)
