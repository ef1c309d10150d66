"""What `hallulab bench` does: load, judge, count, print."""

from __future__ import annotations

import json
import random
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from detectors.protocol import Detector, TrainableDetector
from scenarios.errors import UsageError
from scenarios.labelled import LabelledData, LabelledReply
from scenarios.loaders import LOADERS, load_labelled
from simulator.bench.evaluate import Evaluation, evaluate
from simulator.bench.page import render_page
from simulator.bench.results import measure
from simulator.bench.split import Split, split_replies
from simulator.bench.table import print_report
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
    options: Mapping[str, Any]
    """The data set's own options."""
    detectors: Sequence[str] | None
    """Whom to measure; None: the experiment file's, or the floor alone."""
    limit: int | None
    """At most so many replies, chosen by `seed`."""
    seed: int
    """Seed of that choice, of the cut into halves, and of training."""
    train: Path | None
    """What detectors that learn are trained on; None: a part of the data set that is then not tested on."""
    config: Path | None
    """Experiment file with detectors, their options, and models."""
    flags: Mapping[str, Any]
    """Flags that win over it."""
    run: Settings
    """How: recording, replay, progress, flags of the model server."""
    json_file: Path | None
    """Where the numbers go."""
    html_file: Path | None
    """Where the page goes."""


async def bench_command(settings: BenchSettings) -> None:
    """Judge the data set with each detector, and print and write what `simulator.bench.results` measures."""
    data = load_labelled(settings.dataset, settings.data, settings.source, settings.options)
    flags = {**settings.flags, "detectors": settings.detectors}
    experiment = _with_floor(load_experiment(settings.config, flags))
    await check_detectors(experiment, settings.run)
    recording, needed = open_recording(settings.run), needs_model(experiment)
    async with open_pool(experiment, settings.run, recording, needed) as (pool, _):
        detectors = make_detectors(experiment, pool, {})
        split = _split(data, detectors, settings)
        tested = _choose(split.test, settings)
        evaluations = await _evaluate(detectors, split, tested, experiment.concurrency, settings)
    results = measure(evaluations, settings.dataset)
    report = {**results.report, "data": _described(settings, data, split, len(tested))}
    if settings.json_file is not None:
        write_atomically(settings.json_file, json.dumps(report, indent=2, allow_nan=False) + "\n")
    if settings.html_file is not None:
        write_atomically(settings.html_file, render_page(report, results.samples))
    print_report(report)


async def _evaluate(
    detectors: Sequence[Detector],
    split: Split,
    tested: Sequence[LabelledReply],
    concurrency: int,
    settings: BenchSettings,
) -> list[Evaluation]:
    evaluations: list[Evaluation] = []
    with bars(settings.run.quiet) as shown:
        for detector in detectors:
            task = shown.add_task(detector.name, total=len(tested))
            train_s = None
            if isinstance(detector, TrainableDetector):
                started = time.perf_counter()
                detector.fit(split.train, settings.seed)
                train_s = time.perf_counter() - started
            evaluations.append(
                await evaluate(detector, tested, concurrency, partial(shown.advance, task), train_s)
            )
    return evaluations


def _split(data: LabelledData, detectors: Sequence[Detector], settings: BenchSettings) -> Split:
    """What detectors that learn are trained on, and what all are measured on.

    Raises:
        UsageError: `--train` is given and no detector learns, or the data cannot be cut.
    """
    learning = [detector.name for detector in detectors if isinstance(detector, TrainableDetector)]
    if settings.train is None:
        if not learning or not data:
            return Split((), tuple(data), "all replies")
        return split_replies(data, settings.seed)
    if not learning:
        raise UsageError(
            f"--train {settings.train}: no detector here learns. Leave --train out, or name one that does."
        )
    if settings.dataset in LOADERS:
        train = load_labelled(settings.dataset, settings.train, settings.source, settings.options)
    else:
        train = load_labelled(str(settings.train))
    if not train:
        raise UsageError(f"--train {settings.train}: there is no labelled reply to learn from.")
    return Split(tuple(train), tuple(data), f"learnt from {settings.train}")


def _described(settings: BenchSettings, data: LabelledData, split: Split, tested: int) -> dict[str, Any]:
    return {
        "dataset": settings.dataset,
        "replies": len(data),
        "left_out": dict(data.left_out),
        "split": split.how,
        "trained_on": len(split.train),
        "tested_on": tested,
        "seed": settings.seed,
    }


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
