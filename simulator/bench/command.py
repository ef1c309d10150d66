"""The command `hallulab bench`: load, judge, count, print."""

from __future__ import annotations

import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from hallulab.detectors.base.protocol import Detector, TrainableDetector
from hallulab.scenarios.datasets import list_datasets, load_labelled
from hallulab.scenarios.errors import UsageError
from hallulab.scenarios.files.atomic import write_atomically
from hallulab.scenarios.files.data_files import expand_home, is_file, is_folder
from hallulab.scenarios.labelled import LabelledData, LabelledReply
from hallulab.simulator.bench.baselines import FLAG_ALL, MAJORITY, compute_rater_agreement
from hallulab.simulator.bench.page import render_page
from hallulab.simulator.bench.planted import FILE as PLANTED
from hallulab.simulator.bench.planted import is_planted
from hallulab.simulator.bench.results import BenchData, Results, measure
from hallulab.simulator.bench.split import (
    CrossValidation,
    Split,
    choose_replies,
    split_into_folds,
    split_replies,
)
from hallulab.simulator.bench.sweep import Sweep, build_sweep_report, list_configurations, load_sweep
from hallulab.simulator.bench.tables import ROWS
from hallulab.simulator.bench.terminal import print_report
from hallulab.simulator.experiment.config import Component, Experiment, load_experiment
from hallulab.simulator.experiment.models import RunSettings, open_pool, open_recording, serve_models, warn_of
from hallulab.simulator.experiment.participants import is_model_needed, make_detectors
from hallulab.simulator.report.columns import format_csv
from hallulab.simulator.runs.outputs import check_outputs

FLOOR = "lexical"
"""The simple detector that every table has, for comparison."""


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
    """Detectors to measure; None: those of the experiment file, or the floor alone."""
    by: Sequence[str]
    """Fields of `meta` by which the numbers are broken down, too."""
    limit: int | None
    """Largest number of replies, chosen by the seed."""
    seed: int | None
    """Seed of that choice, of the cut into halves or folds, of training, and of detectors' samples; None: the
    experiment file's."""
    train: Path | None
    """Training data; None: a part of the data set, which is then not tested on."""
    folds: int | None
    """Number of folds. Detectors that learn are trained once a fold, on the others, and judge it."""
    sweep: Path | None
    """Sweep file: a detector in many configurations."""
    config: Path | None
    """Experiment file with detectors, their options, and models."""
    flags: Mapping[str, Any]
    """Flags that override it."""
    run: RunSettings
    """Recording, replay, progress, flags of the model server."""
    json_file: Path | None
    """File for the numbers."""
    csv_file: Path | None
    """File for the rows of all levels."""
    html_file: Path | None
    """File for the page."""


async def run_bench(settings: BenchSettings) -> None:
    """Judge the data set with each detector; print and write the numbers of
    `hallulab.simulator.bench.results`."""
    if settings.folds is not None and settings.train is not None:
        raise UsageError("--folds and --train exclude each other: folds are learnt from the data itself.")
    settings = replace(settings, dataset=_locate_dataset(settings.dataset))
    _check_outputs(settings)
    data = load_labelled(settings.dataset, settings.data, settings.source, settings.options)
    _check_fields(settings.by, data)
    train = _train_data(settings)
    sweep = None if settings.sweep is None else load_sweep(settings.sweep)
    experiment = _read_experiment(settings, sweep)
    async with open_pool(experiment, open_recording(settings.run)) as pool:
        detectors = make_detectors(experiment, pool, {})
        for detector in detectors:
            _refuse_floors(detector.name, (FLAG_ALL, MAJORITY))
        splits = _split_data(data, train, detectors, settings, experiment.seed)
        groups = set[str]().union(*(split.tested_groups for split in splits))
        measurable = [reply for reply in data if reply.group in groups]
        if not measurable:
            raise UsageError(f"{settings.dataset}: no labelled reply is left to judge.")
        tested = choose_replies(measurable, settings.limit, experiment.seed)
        validation = CrossValidation(splits, tested, experiment.concurrency, settings.run.quiet)
        async with serve_models(pool, settings.run, is_model_needed(detectors)):
            warn_of(detectors)
            evaluations = await validation.evaluate(detectors, experiment.seed)
            runs = [evaluations[1:]]
            for repeat in range(1, sweep.repeats if sweep is not None else 1):
                again = experiment.model_copy(
                    update={"seed": experiment.seed + repeat, "detectors": experiment.detectors[1:]}
                )
                runs.append(await validation.evaluate(make_detectors(again, pool, {}), again.seed))
    described = _describe_data(settings, data, splits, tested, experiment.seed, validation.not_trained)
    swept = None if sweep is None else build_sweep_report(sweep, runs)
    results = measure(evaluations, described, swept, settings.by)
    try:
        print_report(results.report)
    finally:
        # The reader of the table may stop early (`| head`). The files are written nevertheless.
        _write(settings, results)


def _check_fields(fields: Sequence[str], data: LabelledData) -> None:
    """Raise UsageError if no reply has one of the fields in its `meta`."""
    known = sorted({name for reply in data for name in reply.meta})
    for field in fields:
        if field not in known:
            there = f"Give one of: {', '.join(known)}." if known else "These replies have no `meta`."
            raise UsageError(f"--by {field}: no reply has this field in its `meta`. {there}")


def _locate_dataset(dataset: str) -> str:
    """Return the file of a folder of planted errors, or what was given."""
    if dataset in list_datasets():
        return dataset
    folder = expand_home(dataset)
    return str(folder / PLANTED) if is_folder(folder) and is_file(folder / PLANTED) else dataset


def _write(settings: BenchSettings, results: Results) -> None:
    report = results.report
    if settings.json_file is not None:
        write_atomically(settings.json_file, report.text())
    if settings.csv_file is not None:
        write_atomically(settings.csv_file, format_csv(ROWS, report.rows))
    if settings.html_file is not None:
        write_atomically(settings.html_file, render_page(report, results.samples))


def _check_outputs(settings: BenchSettings) -> None:
    """Raise UsageError where an output cannot be written, or would overwrite an input or another output."""
    own = None if settings.dataset in list_datasets() else expand_home(settings.dataset)
    run = settings.run
    check_outputs(
        {"--json": settings.json_file, "--csv": settings.csv_file, "--html": settings.html_file},
        (own, settings.data, settings.train, settings.config, settings.sweep, run.replay, run.record),
    )


def _read_experiment(settings: BenchSettings, sweep: Sweep | None) -> Experiment:
    """Read the experiment. Its detectors are the floor and those asked for.

    Raises:
        UsageError: the file or a flag is wrong, detectors are named beside a sweep, or one has a floor's
            name.
    """
    if sweep is not None and settings.detectors is not None:
        raise UsageError("--detectors and --sweep exclude each other: the sweep file names its detector.")
    flags = {**settings.flags, "detectors": settings.detectors, "seed": settings.seed}
    experiment = load_experiment(settings.config, flags)
    for chosen in experiment.detectors:
        if chosen.name != FLOOR or chosen.kind != FLOOR:
            _refuse_floors(chosen.name, (FLAG_ALL, MAJORITY, FLOOR))
    if sweep is not None:
        swept = tuple(list_configurations(sweep))
        return _add_floor(experiment.model_copy(update={"detectors": swept}))
    return _add_floor(experiment)


def _refuse_floors(name: str, floors: Sequence[str]) -> None:
    if name in floors:
        raise UsageError(
            f"{name} is the name of a floor that every table has. Give the detector another `name`."
        )


def _train_data(settings: BenchSettings) -> LabelledData | None:
    if settings.train is None:
        return None
    if settings.dataset in list_datasets():
        train = load_labelled(settings.dataset, settings.train, settings.source, settings.options)
    else:
        train = load_labelled(str(settings.train))
    if not train:
        raise UsageError(f"--train {settings.train}: there is no labelled reply to learn from.")
    return train


def _split_data(
    data: LabelledData,
    train: LabelledData | None,
    detectors: Sequence[Detector],
    settings: BenchSettings,
    seed: int,
) -> list[Split]:
    """Cut the data into training and test parts: one split, or one a fold.

    Raises:
        UsageError: `--train` or `--folds` is given and no detector learns, or the data cannot be cut.
    """
    learning = any(isinstance(detector, TrainableDetector) for detector in detectors)
    if settings.folds is not None:
        if not learning:
            raise UsageError(
                f"--folds {settings.folds}: no detector here learns. Leave --folds out, or name one that "
                "does."
            )
        if data:
            return split_into_folds(data, settings.folds, seed)
    if train is None and is_planted(data):
        return [Split((), tuple(data), "all replies")]
    if train is not None:
        if not learning:
            raise UsageError(
                f"--train {settings.train}: no detector here learns. Leave --train out, or name one that "
                "does."
            )
        return [Split(tuple(train), tuple(data), f"learnt from {settings.train}")]
    if not learning or not data:
        return [Split((), tuple(data), "all replies")]
    return [split_replies(data, seed)]


def _describe_data(
    settings: BenchSettings,
    data: LabelledData,
    splits: Sequence[Split],
    tested: Sequence[LabelledReply],
    seed: int,
    not_trained: Mapping[str, str],
) -> BenchData:
    sizes = [len(split.train) for split in splits]
    groups = [{reply.group for reply in tested} & split.tested_groups for split in splits]
    learnt = [{reply.group for reply in split.train} for split in splits]
    return BenchData(
        dataset=settings.dataset,
        replies=len(data),
        left_out=dict(data.left_out),
        split=splits[0].how,
        folds=len(splits) if settings.folds is not None else None,
        trained_on=round(statistics.fmean(sizes)),
        tested_on=len(tested),
        groups_in_both=sum(len(known & here) for known, here in zip(learnt, groups, strict=True)),
        raters=compute_rater_agreement(tested),
        seed=seed,
        not_trained=dict(not_trained),
    )


def _add_floor(experiment: Experiment) -> Experiment:
    """Return the experiment with the floor first, and without detectors that nobody asked for."""
    chosen = experiment.detectors if "detectors" in experiment.model_fields_set else ()
    floor = next((one for one in chosen if one.name == FLOOR), Component(name=FLOOR, kind=FLOOR))
    others = (one for one in chosen if one.name != FLOOR)
    return experiment.model_copy(update={"detectors": (floor, *others)})
