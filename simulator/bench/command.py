"""What `hallulab bench` does: load, judge, count, print."""

from __future__ import annotations

import json
import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from scenarios.errors import UsageError
from scenarios.labelled import LabelledReply
from scenarios.loaders import load_labelled
from simulator.bench.evaluate import Evaluation, evaluate
from simulator.bench.rows import response_row
from simulator.bench.table import print_rows
from simulator.config import Component, Experiment, load_experiment
from simulator.laboratory import (
    Settings,
    check_detectors,
    make_detectors,
    needs_model,
    open_pool,
    open_recording,
)
from simulator.progress import bars
from simulator.run_folder import write_atomically

FLOOR = "lexical"
"""The detector that every table has, to compare with."""


@dataclass(frozen=True)
class BenchSettings:
    """The command's arguments."""

    dataset: str
    """Registered data set, or path of a JSONL file."""
    data: Path | None
    """Folder of the data set's files."""
    source: str | None
    """Part of the data set."""
    detectors: Sequence[str] | None
    """Whom to measure; None: the experiment file's, or the floor alone."""
    limit: int | None
    """At most so many replies, chosen by `seed`."""
    seed: int
    """Seed of that choice."""
    config: Path | None
    """Experiment file with detectors, their options, and models."""
    flags: Mapping[str, Any]
    """Flags that win over it."""
    run: Settings
    """How: recording, replay, progress, flags of the model server."""
    json_file: Path | None
    """Where the rows go."""


async def bench_command(settings: BenchSettings) -> None:
    """Judge the data set with each detector and print and write the rows."""
    replies = _choose(load_labelled(settings.dataset, settings.data, settings.source), settings)
    flags = {**settings.flags, "detectors": settings.detectors}
    experiment = _with_floor(load_experiment(settings.config, flags))
    await check_detectors(experiment, settings.run)
    evaluations: list[Evaluation] = []
    recording, needed = open_recording(settings.run), needs_model(experiment)
    async with open_pool(experiment, settings.run, recording, needed) as (pool, _):
        with bars(settings.run.quiet) as shown:
            for detector in make_detectors(experiment, pool, {}):
                task = shown.add_task(detector.name, total=len(replies))
                evaluations.append(
                    await evaluate(detector, replies, experiment.concurrency, partial(shown.advance, task))
                )
    rows = [response_row(evaluation, settings.dataset) for evaluation in evaluations]
    if settings.json_file is not None:
        write_atomically(settings.json_file, json.dumps({"rows": rows}, indent=2) + "\n")
    print_rows(rows)


def _with_floor(experiment: Experiment) -> Experiment:
    """The experiment with the floor as its first detector, and no detectors that nobody asked for."""
    chosen = experiment.detectors if "detectors" in experiment.model_fields_set else ()
    floor = next((one for one in chosen if one.name == FLOOR), Component(name=FLOOR, kind=FLOOR))
    others = (one for one in chosen if one.name != FLOOR)
    return experiment.model_copy(update={"detectors": (floor, *others)})


def _choose(replies: Sequence[LabelledReply], settings: BenchSettings) -> list[LabelledReply]:
    if not replies:
        raise UsageError(f"{settings.dataset}: no labelled reply is left to judge.")
    if settings.limit is None or settings.limit >= len(replies):
        return list(replies)
    return random.Random(settings.seed).sample(list(replies), settings.limit)  # noqa: S311 - a seeded choice of data
