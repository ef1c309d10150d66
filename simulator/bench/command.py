"""What `hallulab bench` does: load, judge, count, print."""

from __future__ import annotations

import json
import random
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)

from scenarios.errors import UsageError
from scenarios.labelled import LabelledReply
from scenarios.loaders import load_labelled
from simulator.bench.evaluate import Evaluation, evaluate
from simulator.bench.rows import response_row
from simulator.bench.table import print_rows
from simulator.config import load_experiment
from simulator.laboratory import Settings, make_detectors, open_pool, open_recording
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
    detectors: tuple[str, ...]
    """Whom to measure."""
    limit: int | None
    """At most so many replies, chosen by `seed`."""
    seed: int
    """Seed of that choice."""
    config: Path | None
    """Experiment file with detector options and models."""
    flags: Mapping[str, Any]
    """Flags that win over it."""
    run: Settings
    """How: recording, replay, progress, flags of the model server."""
    json_file: Path | None
    """Where the rows go."""


async def bench_command(settings: BenchSettings) -> None:
    """Judge the data set with each detector and print and write the rows."""
    replies = _choose(load_labelled(settings.dataset, settings.data, settings.source), settings)
    flags = {**settings.flags, "detectors": _with_floor(settings.detectors)}
    experiment = load_experiment(settings.config, flags)
    evaluations: list[Evaluation] = []
    needs_model = any(detector.kind != FLOOR for detector in experiment.detectors)
    async with open_pool(experiment, settings.run, open_recording(settings.run), needs_model) as (pool, _):
        with _bars(settings.run.quiet) as bars:
            for detector in make_detectors(experiment, pool, {}):
                task = bars.add_task(detector.name, total=len(replies))
                evaluations.append(
                    await evaluate(detector, replies, experiment.concurrency, lambda: bars.advance(task))  # noqa: B023
                )
    rows = [response_row(evaluation, settings.dataset) for evaluation in evaluations]
    if settings.json_file is not None:
        write_atomically(settings.json_file, json.dumps({"rows": rows}, indent=2) + "\n")
    print_rows(rows)


def _with_floor(detectors: Sequence[str]) -> list[str]:
    return [FLOOR, *(name for name in detectors if name != FLOOR)]


def _choose(replies: Sequence[LabelledReply], settings: BenchSettings) -> list[LabelledReply]:
    if not replies:
        raise UsageError(f"{settings.dataset}: no labelled reply is left to judge.")
    if settings.limit is None or settings.limit >= len(replies):
        return list(replies)
    return random.Random(settings.seed).sample(list(replies), settings.limit)  # noqa: S311 - a seeded choice of data


def _bars(quiet: bool) -> Progress:
    return Progress(
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        TextColumn("left"),
        TimeRemainingColumn(),
        console=Console(stderr=True),
        disable=quiet or not sys.stderr.isatty(),
    )
